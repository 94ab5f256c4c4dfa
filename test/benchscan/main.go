package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/controlplane"
)

// A bench is a control plane and the controller beside it.
type bench struct {
	policies, objects, namespaces int
	rate                          int    // of violations a second
	profiles                      string // a folder, or nothing

	folder, program string
	plane           *controlplane.ControlPlane
	proxy           *proxy
	client          client.Client
	typed           kubernetes.Interface
	metadata        metadata.Interface
	controller      *process
	violating       int       // objects that are there
	audited         int64     // bytes of the audit log
	began           time.Time // when a step did
}

func main() {
	b := &bench{}
	flag.IntVar(&b.policies, "policies", 200, "how many policies")
	flag.IntVar(&b.objects, "objects", 100000, "how many objects")
	flag.IntVar(&b.namespaces, "namespaces", 300, "how many namespaces they are in")
	flag.IntVar(&b.rate, "rate", 1000, "how many violations a second are made, for ten seconds")
	steps := flag.String("steps", allSteps, "what happens, in this order, beginning with first or killed")
	flag.StringVar(&b.profiles, "profile", "", "keep profiles of the controller in this folder; their taking costs")
	update := flag.String("update", "", "write the table into this document, between its marks")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx, *steps, *update); err != nil {
		fmt.Fprintln(os.Stderr, "benchscan:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, steps, update string) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if b.folder, err = os.MkdirTemp("", "kvap-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder) //nolint:errcheck // a temporary folder
	b.program = filepath.Join(b.folder, "kvap-controller")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", b.program, "./cmd/kvap-controller").CombinedOutput(); err != nil {
		return fmt.Errorf("building kvap: %w\n%s", err, text)
	}
	if b.plane, err = controlplane.Start(ctx, controlplane.Options{APIServerFlags: []string{"--audit-log-maxsize=10000"}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.plane.Stop()) }()
	if b.proxy, err = newProxy(strings.TrimPrefix(b.plane.URL(), "https://")); err != nil {
		return err
	}
	defer b.proxy.Close() //nolint:errcheck // it has served
	if err := b.connect(); err != nil {
		return err
	}
	if err := b.load(ctx); err != nil {
		return err
	}
	defer func() {
		if b.controller != nil {
			b.controller.kill()
		}
	}()
	rows, err := b.measure(ctx, steps)
	table := b.render(rows)
	if err != nil || update == "" {
		fmt.Print(table)
		return err
	}
	return insert(update, table)
}

func (b *bench) connect() (err error) {
	scheme := kruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	config := b.plane.Config(controlplane.Admin)
	if b.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if b.metadata, err = metadata.NewForConfig(config); err != nil {
		return err
	}
	config.ContentType = kruntime.ContentTypeProtobuf
	b.typed, err = kubernetes.NewForConfig(config)
	return err
}

// reports are those in namespaces.
func reports() apischema.GroupVersionResource {
	return apischema.GroupVersionResource{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "policyreports"}
}
