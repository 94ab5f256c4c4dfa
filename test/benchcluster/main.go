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
	"runtime"
	"time"

	"github.com/go-logr/logr"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/deploy/crds"
	"github.com/kvap/kvap/test/controlplane"
)

func main() {
	n := flag.Int("policies", 1000, "how many policies")
	profiles := flag.String("profile", "", "keep profiles of the controller in this folder; their taking costs")
	update := flag.String("update", "", "write the table into this document, between its marks")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *n, *profiles, *update); err != nil {
		fmt.Fprintln(os.Stderr, "benchcluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, profiles, update string) (err error) {
	b := &bench{n: n, profiles: profiles}
	folder, err := os.MkdirTemp("", "kvap-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	program := filepath.Join(folder, "kvap")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/kvap-controller").CombinedOutput(); err != nil {
		return fmt.Errorf("building kvap: %w\n%s", err, text)
	}
	if b.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.plane.Stop()) }()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	args := []string{"--kubeconfig", b.plane.Kubeconfig(controlplane.Admin)}
	if profiles != "" {
		args = append(args, "--pprof-bind-address", pprofAddress)
	}
	b.controller = exec.CommandContext(ctx, program, args...)
	b.controller.Stderr = os.Stderr
	if err := b.controller.Start(); err != nil {
		return err
	}
	defer func() {
		_ = b.controller.Process.Kill()
		_ = b.controller.Wait() // it was killed
	}()
	table, err := b.measure(ctx)
	if err != nil || update == "" {
		fmt.Print(table)
		return err
	}
	return insert(update, table)
}

// profileSeconds is how long the CPU is profiled.
const profileSeconds = 20

// prepare installs the definitions.
func (b *bench) prepare(ctx context.Context) error {
	definitions, err := crds.All()
	if err != nil {
		return err
	}
	if err := b.plane.InstallCRDs(ctx, definitions...); err != nil {
		return err
	}
	scheme := kruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	if b.client, err = client.NewWithWatch(b.plane.Config(controlplane.Admin), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return b.follow(ctx)
}

// measure has three rows: all policies at once, one that changes, and rest. What is
// written is counted until the statuses have come to rest.
func (b *bench) measure(ctx context.Context) (string, error) {
	var rows []row
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{fmt.Sprintf("%d policies are made", b.n), func(ctx context.Context) error { return b.profiled(ctx, profileSeconds, b.makeAll) }},
		{"one of them changes", b.changeOne},
		{"nothing for 10 s", func(ctx context.Context) error { return sleep(ctx, 10*time.Second) }},
	} {
		before, err := b.writes()
		if err != nil {
			return "", err
		}
		begun := time.Now()
		if err := step.do(ctx); err != nil {
			return "", fmt.Errorf("%s: %w", step.what, err)
		}
		took := time.Since(begun)
		if err := b.await(ctx, v1alpha1.ConditionReady); err != nil { // once types are checked
			return "", err
		}
		if err := sleep(ctx, 3*time.Second); err != nil { // what comes after
			return "", err
		}
		after, err := b.writes()
		if err != nil {
			return "", err
		}
		rows = append(rows, row{step.what, took, after.minus(before), memoryOf(b.controller.Process.Pid)})
		fmt.Fprintf(os.Stderr, "%+v\n", rows[len(rows)-1])
	}
	return render(rows, runtime.NumCPU()), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
