package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/cleanup"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/deploy/crds"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/controlplane"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/incluster"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/kyverno"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/webhook/endpoint"
)

// devFlags are the flags of dev as the user gave them.
type devFlags struct {
	files   []string
	dir     string
	mode    string
	crds    []string
	kyverno string
	verbose bool
}

// What --kyverno runs beside kvap.
const (
	kyvernoNone    = "none"
	kyvernoStandIn = "stand-in"
	kyvernoReal    = "real"
	kyvernoClosed  = "1.20"
)

func newDev() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev [PATH...]",
		Short: "Run a control plane on this machine, with the controller and your policies",
		Long: `Dev starts etcd, kube-apiserver and kube-controller-manager on loopback, defines
kvap's kinds and stand-ins for Kyverno's, runs the controller in the same process and
applies the policies of the paths. It prints the path of a kubeconfig file and what to
try with it. Ctrl-C ends all of it and leaves nothing behind but the folder of --dir,
with the data of etcd, logs and kubeconfig files in it. There are no nodes: Pods stay
Pending, but admission is as in any cluster.

With --kyverno something stands in for Kyverno: kvap's reference interpreter, behind
webhooks like Kyverno's. It enforces the policies, and kvap nothing until it is told to,
so that kvap migrate can be tried from plan to finish, and back. It makes no reports, and
in the background (generate, mutate of existing objects) it only deletes what a rule has
generated, when that goes.

With --kyverno=real it is Kyverno: its admission controller and its background
controller, built from their Go module the first time, which takes some twenty minutes
on two cores; KVAP_KYVERNO names a folder of binaries to take instead.

With --kyverno=1.20 it stands in for that version, to which the cluster was upgraded with
the policies in it: it carries out no policy and no exception of kyverno.io, and the API
server denies what makes or changes one.

The servers are built from their Go modules the first time, which needs Go and takes
five to eight minutes on two cores; KVAP_CONTROLPLANE names a folder of binaries to
take instead.

Exit codes: 0 it was told to end, 2 usage or unreadable input, 3 a runtime error,
4 the API server refused some of the policies.`,
		Example: `  kvap dev policies/
  kvap dev policy.yaml --mode shadow
  kvap dev policies/ --kyverno
  kvap dev policies/ --kyverno=real
  kvap dev policies/ --kyverno=1.20`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := input.OneOf("--kyverno", f.kyverno, kyvernoNone, kyvernoStandIn, kyvernoReal, kyvernoClosed); err != nil {
				return err
			}
			if f.kyverno != kyvernoNone && !cmd.Flags().Changed("mode") {
				f.mode = "off"
			}
			return runDev(cmd, append(args, f.files...), f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVarP(&f.files, "filename", "f", nil, "a file or folder of policies, as if it were a PATH")
	flags.StringVar(&f.mode, "mode", "enforce", "what to do with policies that do not say: shadow, enforce or off; with --kyverno, off by default")
	flags.StringVar(&f.kyverno, "kyverno", kyvernoNone, "have Kyverno enforce the policies: stand-in, which --kyverno alone means, or real; 1.20 stands in for that version, which enforces none")
	flags.Lookup("kyverno").NoOptDefVal = kyvernoStandIn
	flags.StringSliceVar(&f.crds, "crds", nil, "files and folders of CustomResourceDefinitions to install first")
	flags.StringVar(&f.dir, "dir", "", "keep data, logs and kubeconfig files in this folder, which stays; a temporary one, which goes, by default")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log what the controller does")
	addRecursive(flags)
	return cmd
}

func runDev(cmd *cobra.Command, paths []string, f devFlags) error {
	options, err := controllerFlags{mode: f.mode, mutations: controller.MutationsAuto, exclude: vap.DefaultExcludedNamespaces(), exceptions: []string{"*"}, reports: "none"}.options()
	if err != nil {
		return err
	}
	objects, err := readSourceObjects(paths, cmd.InOrStdin(), cmd.ErrOrStderr())
	if err != nil {
		return exit.Usage(err)
	}
	definitions, err := readDefinitions(f.crds)
	if err != nil {
		return exit.Usage(err)
	}
	ctx, stop := untilTold(cmd)
	defer stop()
	d := &dev{out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr(), options: options, kyverno: f.kyverno, verbose: f.verbose}
	err = d.run(ctx, f.dir, definitions, objects)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil // it was told to end
	}
	var known *exit.Error
	if err != nil && !errors.As(err, &known) {
		return exit.Runtime(err)
	}
	return err
}

// A dev is a control plane and the controller, in one process.
type dev struct {
	out, errs io.Writer
	options   controller.Options
	kyverno   string
	verbose   bool
	plane     *controlplane.ControlPlane
}

// devUser is whom the controller is to the API server: not the user at the terminal,
// for what the controller does itself triggers no rule.
const devUser = "kvap"

func (d *dev) run(ctx context.Context, dir string, definitions []controlplane.CRD, objects []*unstructured.Unstructured) (err error) {
	log := d.logger() // set first: libraries complain of having none, while the servers are built
	fmt.Fprintln(d.errs, "starting etcd, kube-apiserver and kube-controller-manager on loopback…")
	users := []controlplane.User{{Name: devUser, Groups: []string{"system:masters"}}}
	if d.kyverno == kyvernoReal {
		users = append(users, kyverno.Users()...)
	}
	if d.plane, err = controlplane.Start(ctx, controlplane.Options{Dir: dir, Progress: d.errs, Users: users}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.plane.Stop()) }()
	own, err := crds.All()
	if err != nil {
		return err
	}
	if d.kyverno == kyvernoReal {
		real, err := kyverno.Definitions(ctx, d.errs)
		if err != nil {
			return err
		}
		definitions = append(definitions, real...)
	}
	if err := d.plane.InstallCRDs(ctx, withStandIns(append(own, definitions...))...); err != nil {
		return err
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := incluster.Options{
		Controller: d.options, Cleanup: incluster.CleanAuto,
		Webhook: incluster.Webhook{Endpoint: endpoint.Endpoint{Address: "127.0.0.1:0"}, ExcludeGroups: []string{"system:nodes"}},
	}
	go func() {
		ended <- incluster.Run(ctx, d.plane.Config(devUser), server, log)
	}()
	switch d.kyverno {
	case kyvernoStandIn, kyvernoClosed:
		err = startKyverno(ctx, d.plane.Config(devUser), d.kyverno == kyvernoClosed, log)
	case kyvernoReal:
		fmt.Fprintf(d.errs, "starting Kyverno %s…\n", kyverno.Version())
		_, err = kyverno.Start(ctx, d.plane, d.errs)
	}
	if err != nil {
		return err
	}
	refused, err := d.apply(ctx, objects)
	if err == nil && d.kyverno == kyvernoClosed {
		err = d.guard(ctx)
	}
	if err != nil {
		return err
	}
	d.greet()
	select {
	case <-ctx.Done():
	case err := <-ended:
		return err
	}
	fmt.Fprintln(d.errs, "ending…")
	if err := <-ended; err != nil || refused == 0 {
		return err
	}
	return exit.Partly(nil)
}

// logger is silent unless asked: whoever tries policies has the terminal for them.
func (d *dev) logger() logr.Logger {
	if d.verbose {
		return logTo(d.errs, false)
	}
	return logTo(io.Discard, false)
}

// apply makes the objects, and the namespaces that they need, and says how many the
// API server refused.
func (d *dev) apply(ctx context.Context, objects []*unstructured.Unstructured) (refused int, err error) {
	c, err := client.New(d.plane.Config(controlplane.Admin), client.Options{})
	if err != nil {
		return 0, err
	}
	for _, o := range objects {
		if ns := o.GetNamespace(); ns != "" {
			namespace := &unstructured.Unstructured{}
			namespace.SetAPIVersion("v1")
			namespace.SetKind("Namespace")
			namespace.SetName(ns)
			if err := c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
				return refused, err
			}
		}
		switch err := c.Create(ctx, o); {
		case ctx.Err() != nil:
			return refused, ctx.Err()
		case err != nil:
			refused++
			fmt.Fprintf(d.errs, "error: refused %s\n", diag.Inert(fmt.Sprintf("%s %s: %v", o.GetKind(), o.GetName(), err)))
		default:
			fmt.Fprintf(d.errs, "applied %s\n", diag.Inert(o.GetKind()+" "+o.GetName()))
		}
	}
	return refused, nil
}

// greet says what to do next.
func (d *dev) greet() {
	switch d.kyverno {
	case kyvernoStandIn, kyvernoReal:
		fmt.Fprintf(d.out, "\nexport KUBECONFIG=%s\n\n%s", d.plane.Kubeconfig(controlplane.Admin), wayOff)
		return
	case kyvernoClosed:
		fmt.Fprintf(d.out, "\nexport KUBECONFIG=%s\n\n%s", d.plane.Kubeconfig(controlplane.Admin), wayPast)
		return
	}
	fmt.Fprintf(d.out, `
export KUBECONFIG=%s

kubectl get policytranslations                # what became of each policy
kubectl get validatingadmissionpolicies       # what the API server judges by
kubectl apply -f policy.yaml                  # one more policy
kubectl run probe --image=nginx --dry-run=server   # is it denied?

Ctrl-C ends it and leaves nothing behind.
`, d.plane.Kubeconfig(controlplane.Admin))
}

// wayOff is what to try where Kyverno is stood in for.
const wayOff = `kubectl run probe --image=nginx --dry-run=server   # is it denied, and by whom?
kvap migrate plan                             # what each policy becomes
kvap migrate shadow --all                     # the first step; docs/migration.md has all
kvap status -A                                # where each policy is

Ctrl-C ends it and leaves nothing behind.
`

// wayPast is what to try where Kyverno 1.20 is stood in for.
const wayPast = `kubectl run probe --image=nginx --dry-run=server   # nobody denies anything
kubectl annotate clusterpolicies.kyverno.io --all a=b   # is denied: they can only be deleted
kvap migrate plan                             # what each policy becomes
kvap migrate shadow --all                     # the first step; docs/upgrade-1.20.md has all
kvap status -A                                # where each policy is

Ctrl-C ends it and leaves nothing behind.
`

// withStandIns adds a definition for each kind of Kyverno that the controller reads and
// the definitions do not have. Where they have one it stands alone: the versions that a
// stand-in has besides would never be served.
func withStandIns(definitions []controlplane.CRD) []controlplane.CRD {
	defined := sets.New[string]()
	for _, d := range definitions {
		defined.Insert(d.GetName())
	}
	out := definitions
	for _, d := range standIns() {
		if !defined.Has(d.GetName()) {
			out = append(out, d)
		}
	}
	return out
}

// standIns define the kinds of Kyverno that the controller reads.
func standIns() []controlplane.CRD {
	var out []controlplane.CRD
	for _, k := range controller.ForeignKinds() {
		out = append(out, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
	}
	for _, k := range cleanup.Kinds() {
		out = append(out, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
	}
	return out
}

// readDefinitions reads CustomResourceDefinitions.
func readDefinitions(paths []string) ([]controlplane.CRD, error) {
	objects, err := readObjects(paths, nil)
	if err != nil {
		return nil, err
	}
	var out []controlplane.CRD
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			out = append(out, o)
		}
	}
	return out, nil
}

// readSourceObjects reads the objects of the kinds that the controller reads, and
// says how many others there were.
func readSourceObjects(paths []string, stdin io.Reader, errs io.Writer) ([]*unstructured.Unstructured, error) {
	objects, err := readObjects(paths, stdin)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	others := 0
	for _, o := range objects {
		if gvk := o.GroupVersionKind(); controller.Reads(gvk) || cleanup.Reads(gvk) {
			out = append(out, o)
		} else {
			others++
		}
	}
	if others > 0 {
		fmt.Fprintf(errs, "warning: %s of other kinds left out; kubectl apply takes them\n", report.Count(others, "object", "objects"))
	}
	if len(paths) > 0 && len(out) == 0 {
		return nil, errors.New("there is no policy in the input")
	}
	return out, nil
}

// readObjects reads all documents of the paths.
func readObjects(paths []string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	sources, found, err := input.Read(paths, stdin)
	if err != nil {
		return nil, err
	}
	if found.HasErrors() {
		return nil, found[0]
	}
	var out []*unstructured.Unstructured
	for _, s := range sources {
		objects, found := manifest.Read(s.Name, s.Data)
		if found.HasErrors() {
			return nil, found[0]
		}
		for _, o := range objects {
			out = append(out, &unstructured.Unstructured{Object: o.Value})
		}
	}
	return out, nil
}
