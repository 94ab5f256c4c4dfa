package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/cleanup"
	"github.com/kvap/kvap/controller/incluster"
	"github.com/kvap/kvap/controller/webhook/endpoint"
	"github.com/kvap/kvap/deploy/crds"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report/doc"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/kyverno"
	"github.com/kvap/kvap/test/standin"
)

// options say what runs.
type options struct {
	Dir         string // for data, logs and kubeconfig files; a temporary one where empty
	Controller  controller.Options
	Kyverno     string   // what runs beside kvap
	Registries  []string // that rules may ask for images
	Definitions []controlplane.CRD
	Objects     []*unstructured.Unstructured // policies and exceptions
	Out, Errs   io.Writer
	Log         logr.Logger
}

// A running is a control plane and the controller, in one process.
type running struct {
	options
	plane *controlplane.ControlPlane
}

// kyvernos are what may run beside kvap.
func kyvernos() []string { return []string{noKyverno, kyvernoStandIn, kyvernoReal, kyvernoClosed} }

// What --kyverno runs beside kvap.
const (
	noKyverno      = "none"
	kyvernoStandIn = "stand-in"
	kyvernoReal    = "real"
	kyvernoClosed  = "1.20"
)

// devUser is whom the controller is to the API server: not the user at the terminal,
// for what the controller does itself triggers no rule.
const devUser = "kvap"

// start runs all of it until the context ends.
func start(ctx context.Context, o options) (err error) {
	d := &running{options: o}
	if d.Controller.MetricsAddress, err = controlplane.FreeAddress(); err != nil {
		return err
	}
	definitions := o.Definitions
	fmt.Fprintln(d.Errs, "starting etcd, kube-apiserver and kube-controller-manager on loopback…")
	users := []controlplane.User{{Name: devUser, Groups: []string{"system:masters"}}}
	if d.Kyverno == kyvernoReal {
		users = append(users, kyverno.Users()...)
	}
	if d.plane, err = controlplane.Start(ctx, controlplane.Options{Dir: d.Dir, Progress: d.Errs, Users: users}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.plane.Stop()) }()
	own, err := crds.All()
	if err != nil {
		return err
	}
	if d.Kyverno == kyvernoReal {
		real, err := kyverno.Definitions(ctx, d.Errs)
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
		Controller: d.Controller, Cleanup: incluster.CleanAuto,
		Webhook: incluster.Webhook{
			Endpoint: endpoint.Endpoint{Address: "127.0.0.1:0"}, ExcludeGroups: []string{"system:nodes"}, Registries: d.Registries, LocalRegistries: true,
		},
	}
	go func() {
		ended <- incluster.Run(ctx, d.plane.Config(devUser), server, d.Log)
	}()
	switch d.Kyverno {
	case kyvernoStandIn, kyvernoClosed:
		err = startKyverno(ctx, d.plane.Config(devUser), d.Kyverno == kyvernoClosed, d.Log)
	case kyvernoReal:
		fmt.Fprintf(d.Errs, "starting Kyverno %s…\n", kyverno.Version())
		_, err = kyverno.Start(ctx, d.plane, d.Errs)
	}
	if err != nil {
		return err
	}
	c, err := client.New(d.plane.Config(controlplane.Admin), client.Options{})
	if err != nil {
		return err
	}
	refused, err := d.apply(ctx, c)
	if err == nil && d.Kyverno == kyvernoClosed { // which has the API server deny what makes or changes policies of kyverno.io
		err = standin.Close(ctx, c, false)
	}
	if err != nil {
		return err
	}
	if err := d.settle(ctx, d.plane.Config(controlplane.Admin), d.policies()-refused); err != nil {
		return err
	}
	d.greet()
	select {
	case <-ctx.Done():
	case err := <-ended:
		return err
	}
	fmt.Fprintln(d.Errs, "ending…")
	if err := <-ended; err != nil || refused == 0 {
		return err
	}
	return exit.Partly(nil)
}

// apply makes the objects, and the namespaces that they need, and says how many the
// API server refused.
func (d *running) apply(ctx context.Context, c client.Client) (refused int, err error) {
	for _, o := range d.Objects {
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
			fmt.Fprintf(d.Errs, "error: refused %s\n", diag.Inert(fmt.Sprintf("%s %s: %v", o.GetKind(), o.GetName(), err)))
		default:
			fmt.Fprintf(d.Errs, "applied %s\n", diag.Inert(o.GetKind()+" "+o.GetName()))
		}
	}
	return refused, nil
}

// greet says what to do next.
func (d *running) greet() {
	try := wayAlone
	switch d.Kyverno {
	case kyvernoStandIn, kyvernoReal:
		try = wayOff
	case kyvernoClosed:
		try = wayPast
	}
	fmt.Fprintf(d.Out, greeting, d.plane.Kubeconfig(controlplane.Admin), try, d.Controller.MetricsAddress)
}

// greeting has the kubeconfig file, what to try, and where metrics are.
const greeting = `
export KUBECONFIG=%s

%s
kvap.dev has kinds of the same names as kyverno.io, and kubectl takes the first: name the group,
as in kubectl get clusterpolicies.kyverno.io
Metrics of the controller and the webhook: http://%s/metrics

Ctrl-C ends it and leaves nothing behind.
`

// wayAlone is what to try where there is no Kyverno.
const wayAlone = `kubectl get policytranslations                # what became of each policy
kubectl get validatingadmissionpolicies       # what the API server judges by
kubectl apply -f policy.yaml                  # one more policy
kubectl apply --dry-run=server -f object.yaml # is it denied?
`

// wayOff is what to try where Kyverno is stood in for.
const wayOff = `kubectl run probe --image=nginx --dry-run=server   # is it denied, and by whom?
kvap migrate plan                             # what each policy becomes
kvap migrate shadow --all                     # the first step
kvap status -A                                # where each policy is

The whole way is in ` + diag.Docs + `migration.md.
`

// wayPast is what to try where Kyverno 1.20 is stood in for.
const wayPast = `kubectl run probe --image=nginx --dry-run=server   # nobody denies anything
kubectl annotate clusterpolicies.kyverno.io --all a=b   # is denied: they can only be deleted
kvap migrate plan                             # what each policy becomes
kvap migrate shadow --all                     # the first step
kvap status -A                                # where each policy is

The whole way is in ` + diag.Docs + `upgrade-1.20.md.
`

// withStandIns adds a definition for each kind of Kyverno that the controller reads and
// the definitions do not have. Where they have one it stands alone: the versions that a
// stand-in has besides would never be served.
func withStandIns(definitions []controlplane.CRD) []controlplane.CRD {
	defined := sets.New[string]()
	for _, d := range definitions {
		defined.Insert(d.GetName())
	}
	missing := slices.DeleteFunc(standIns(), func(d controlplane.CRD) bool { return defined.Has(d.GetName()) })
	return append(definitions, missing...)
}

// standIns define the kinds of Kyverno that the controller reads.
func standIns() (out []controlplane.CRD) {
	kinds := controller.ForeignKinds()
	for _, k := range cleanup.Kinds() {
		kinds = append(kinds, controller.ForeignKind(k))
	}
	for _, k := range kinds {
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
	return slices.DeleteFunc(objects, func(o controlplane.CRD) bool { return o.GetKind() != "CustomResourceDefinition" }), nil
}

// readPolicies reads the objects of the kinds that the controller reads, and
// says how many others there were.
func readPolicies(paths []string, stdin io.Reader, errs io.Writer) ([]*unstructured.Unstructured, error) {
	objects, err := readObjects(paths, stdin)
	if err != nil {
		return nil, err
	}
	out := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		gvk := o.GroupVersionKind()
		return !controller.Reads(gvk) && !cleanup.Reads(gvk)
	})
	if others := len(objects) - len(out); others > 0 {
		fmt.Fprintf(errs, "warning: %s of other kinds left out; kubectl apply takes them\n", doc.Count(others, "object", "objects"))
	}
	if len(paths) > 0 && len(out) == 0 {
		return nil, fmt.Errorf("there is no policy in %s", input.Names(paths, ""))
	}
	return out, nil
}

// readObjects reads all documents of the paths.
func readObjects(paths []string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	sources, found, err := input.Read(paths, stdin)
	if err != nil {
		return nil, err
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, s := range sources {
		if _, found := policy.Parse(s.Name, s.Data); slices.ContainsFunc(found, isUnread) {
			return nil, found[slices.IndexFunc(found, isUnread)]
		}
		objects, found := manifest.Read(s.Name, s.Data)
		if err := found.Err(); err != nil {
			return nil, err
		}
		for _, o := range objects {
			out = append(out, &unstructured.Unstructured{Object: o.Value})
		}
	}
	return out, nil
}

// isUnread tells of a document that was meant as a policy and is not read as one. What is
// wrong inside of a policy is for the API server and the controller to say.
func isUnread(d diag.Diagnostic) bool {
	return d.Severity == diag.Error && (d.Code == diag.Template || slices.Contains([]string{"", "kind", "apiVersion"}, d.Path))
}
