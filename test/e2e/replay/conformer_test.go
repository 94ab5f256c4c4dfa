//go:build e2e

package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/chainsaw"
)

// tester is the user that does what tests say: the administrator of a cluster as kind
// makes it.
const tester = "kubernetes-admin"

// A conformer is a control plane with `kvap-controller` in place of Kyverno, for one test
// at a time.
type conformer struct {
	*served
	cluster chainsaw.Setup
	kinds   discovery.DiscoveryInterface
	before  map[types.UID]bool // what was there before the first test
}

func newConformer(t *testing.T) *conformer {
	t.Helper()
	workloads := []string{"deployment-controller", "replicaset-controller", "statefulset-controller", "job-controller"}
	c := &conformer{served: newServed(t, workloads, "--mode", "enforce", "--exception-namespaces", "*", "--reports", "wgpolicyk8s", "--report-results", "pass,skip,warn,error", "--events", "all")}
	config := c.plane.Config(tester)
	config.WarningHandler = rest.NoWarnings{}
	user, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := controlplane.Kubectl(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c.cluster = chainsaw.Setup{
		Path:   filepath.Dir(kubectl),
		Client: user, Kubeconfig: c.plane.Kubeconfig(tester),
		Prepare: c.prepare, Settle: c.settle, Idle: c.idle, Answer: c.answer, Translate: translated,
		Sleep: 2 * time.Second, Patience: patient,
	}
	if c.kinds, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := c.judged.Create(t.Context(), object("v1", "Namespace", "", "kyverno")); err != nil {
		t.Fatal(err)
	}
	if err := c.judged.Create(t.Context(), kyvernoSettings()); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"default", "kyverno"} {
		if err := c.account(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
	}
	asked := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", registration.PoliciesName)
	err = within30(t.Context(), func() (string, error) {
		err := c.judged.Get(t.Context(), client.ObjectKeyFromObject(asked), asked)
		if apierrors.IsNotFound(err) {
			return "API servers do not ask about policies", nil
		}
		return "", err
	})
	if err == nil {
		err = c.plane.Settle(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.before = map[types.UID]bool{}
	err = c.each(t.Context(), func(o *unstructured.Unstructured) error {
		c.before[o.GetUID()] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// account makes the account of a namespace that a controller would make which the control
// plane has not.
func (c *conformer) account(ctx context.Context, namespace string) error {
	err := c.judged.Create(ctx, object("v1", "ServiceAccount", namespace, "default"))
	refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) // the controller would not fare better
	if refused || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// prepare has the server know the kind of an object. What deletes each minute comes in the first half
// of one, so that tests see before what is there. A namespace that is going away is
// gone before one of the same name is made. Nothing runs, so what an assertion says of
// the status of workloads is left out.
func (c *conformer) prepare(ctx context.Context, o *unstructured.Unstructured) error {
	if slices.Contains([]string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}, o.GetKind()) {
		delete(o.Object, "status")
	}
	if _, scheduled, _ := unstructured.NestedString(o.Object, "spec", "schedule"); scheduled && isPolicy(o) && time.Now().Second() >= 30 {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Second)))
	}
	_, err := c.cluster.IsObjectNamespaced(o)
	if meta.IsNoMatchError(err) {
		gvk := o.GroupVersionKind()
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		crd := controlplane.StandIn(gvk, resource.Resource, o.GetNamespace() != "" || !strings.HasPrefix(gvk.Kind, "Cluster"))
		return c.plane.InstallCRDs(ctx, crd)
	}
	if err != nil || o.GetKind() != "Namespace" {
		return err
	}
	return within30(ctx, func() (string, error) {
		have := object("v1", "Namespace", "", o.GetName())
		err := c.judged.Get(ctx, client.ObjectKeyFromObject(o), have)
		if err == nil && have.GetDeletionTimestamp() != nil {
			return "the namespace " + o.GetName() + " does not end", nil
		}
		return "", client.IgnoreNotFound(err)
	})
}

// settle waits until what was sent is in force: a policy is, and an API server judges by
// it; a kind is served; a namespace has its account.
func (c *conformer) settle(ctx context.Context, o *unstructured.Unstructured) error {
	switch {
	case o.GetKind() == "Namespace":
		if o.GetDeletionTimestamp() != nil {
			return nil
		}
		return c.account(ctx, o.GetName())
	case o.GetKind() == "CustomResourceDefinition":
		if o.GetDeletionTimestamp() != nil {
			return nil
		}
		o = o.DeepCopy()
		o.SetResourceVersion("")
		return c.plane.InstallCRDs(ctx, o)
	case isPolicy(o) && o.GetKind() != "PolicyException":
		// Where it is never in force, the assertion that it is ready fails.
		_ = eventuallyIn(ctx, 10*time.Second, func() (string, error) { return c.unserved(ctx, o, false) })
		return c.plane.Settle(ctx)
	case isPolicy(o):
		if err := c.quiet(ctx); err != nil {
			return err
		}
		return c.plane.Settle(ctx)
	}
	return nil
}

// quiet waits until kvap has left its policies as they are for a while: no status says
// that an exception is in force.
func (c *conformer) quiet(ctx context.Context) error {
	const still = 2 * time.Second
	last, since := "", time.Now()
	return within30(ctx, func() (string, error) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("admissionregistration.k8s.io/v1")
		list.SetKind("ValidatingAdmissionPolicyList")
		if err := c.judged.List(ctx, list); err != nil {
			return "", err
		}
		versions := ""
		for _, o := range list.Items {
			versions += o.GetResourceVersion() + " "
		}
		if versions != last {
			last, since = versions, time.Now()
		}
		if time.Since(since) < still {
			return "kvap goes on changing its policies", nil
		}
		return "", nil
	})
}

// unserved says what keeps a policy from being in force as it is now: that kvap has not
// seen it, or that it is gone; or, if it is to be ready, that it is not.
func (c *conformer) unserved(ctx context.Context, o *unstructured.Unstructured, ready bool) (string, error) {
	have := object(o.GetAPIVersion(), o.GetKind(), "", "")
	gone := c.judged.Get(ctx, client.ObjectKeyFromObject(o), have)
	if client.IgnoreNotFound(gone) != nil {
		return "", gone
	}
	translation, err := c.translated(ctx, o)
	switch {
	case err != nil:
		return "", err
	case gone != nil && translation == nil && !ready:
		return "", nil
	case gone != nil:
		return "it is not there, or was a moment ago", nil
	case translation == nil:
		return "kvap says nothing of it", nil
	}
	observed, _, _ := unstructured.NestedInt64(translation.Object, "status", "sourceGeneration")
	conditions, _, _ := unstructured.NestedSlice(translation.Object, "status", "conditions")
	said := "kvap has not seen it as it is"
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if ready && condition["type"] == "KindsServed" && condition["status"] == "False" {
			return "the cluster does not serve its kinds yet", nil
		}
		if condition["type"] != "Ready" || observed < have.GetGeneration() {
			continue
		}
		if condition["status"] == "True" || condition["status"] == "False" && !ready {
			return "", nil
		}
		said = fmt.Sprintf("it is not ready: %v: %v", condition["reason"], condition["message"])
	}
	return said, nil
}

// translated is what kvap says of a policy; nil where it says nothing.
func (c *conformer) translated(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kvap.dev/v1alpha1")
	list.SetKind("PolicyTranslationList")
	if err := c.judged.List(ctx, list); err != nil {
		return nil, err
	}
	for i, one := range list.Items {
		source, _, _ := unstructured.NestedStringMap(one.Object, "spec", "source")
		if source["group"] == o.GroupVersionKind().Group && source["kind"] == o.GetKind() && source["name"] == o.GetName() && source["namespace"] == o.GetNamespace() {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// idle waits until no work is left that requests have started.
func (c *conformer) idle(ctx context.Context) error {
	_ = eventuallyIn(ctx, 5*time.Second, func() (string, error) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("kvap.dev/v1alpha1")
		list.SetKind("GenerateRequestList")
		if err := c.judged.List(ctx, list); err != nil || len(list.Items) == 0 {
			return "", err
		}
		return "work is left to be done", nil
	}) // work that is tried for ever is what a test may be about
	return nil
}

// answer answers assertions about the status of policies as kvap has it: whether they are
// ready, and which rules are generated for pod controllers.
func (c *conformer) answer(ctx context.Context, asserted *unstructured.Unstructured) (why string, mine bool, err error) {
	status, ok := asserted.Object["status"].(map[string]any)
	if !ok || !isPolicy(asserted) {
		return "", false, nil
	}
	if why, err = c.unserved(ctx, asserted, true); why != "" || err != nil || status["autogen"] == nil {
		return why, true, err
	}
	have := object(asserted.GetAPIVersion(), asserted.GetKind(), "", "")
	if err := c.judged.Get(ctx, client.ObjectKeyFromObject(asserted), have); err != nil {
		return "", true, err
	}
	compare := expansions
	if asserted.GroupVersionKind().Group == "policies.kyverno.io" {
		compare = func(autogen any, o *unstructured.Unstructured) (wanted, got []string, err error) {
			return c.controllerResources(ctx, autogen, o)
		}
	}
	wanted, got, err := compare(status["autogen"], have)
	if err == nil && !slices.Equal(wanted, got) {
		why = fmt.Sprintf("the rules for pod controllers are %v, want %v", got, wanted)
	}
	return why, true, err
}

// sweep removes what tests have left: policies first, and when kvap has forgotten them
// all else.
func (c *conformer) sweep(ctx context.Context) error {
	var policies []*unstructured.Unstructured
	err := c.each(ctx, func(o *unstructured.Unstructured) error {
		if c.before[o.GetUID()] || !isPolicy(o) {
			return nil
		}
		policies = append(policies, o)
		return client.IgnoreNotFound(c.judged.Delete(ctx, o))
	})
	if err != nil {
		return err
	}
	err = within30(ctx, func() (string, error) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("kvap.dev/v1alpha1")
		list.SetKind("PolicyTranslationList")
		if err := c.judged.List(ctx, list); err != nil || len(list.Items) == 0 {
			return "", err
		}
		return "kvap does not forget the policy " + list.Items[0].GetName(), nil
	})
	if err != nil {
		return err
	}
	if len(policies) > 0 {
		if err := c.plane.Settle(ctx); err != nil {
			return err
		}
	}
	return c.each(ctx, func(o *unstructured.Unstructured) error {
		if c.before[o.GetUID()] || o.GetDeletionTimestamp() != nil || kept(o) {
			return nil
		}
		err := c.judged.Delete(ctx, o, client.GracePeriodSeconds(0))
		if apierrors.IsMethodNotSupported(err) || apierrors.IsConflict(err) {
			return nil
		}
		return client.IgnoreNotFound(err)
	})
}

// kept tells of objects that are not a test's to remove: kvap's own, what passes by
// itself, and definitions, which tests remove themselves.
func kept(o *unstructured.Unstructured) bool {
	kvap := strings.HasPrefix(o.GetName(), "kvap") || strings.HasPrefix(o.GetNamespace(), "kvap-system") || o.GroupVersionKind().Group == "kvap.dev"
	passing := slices.Contains([]string{"Lease", "Endpoints", "EndpointSlice", "APIService", "CustomResourceDefinition", "ControllerRevision", "IPAddress"}, o.GetKind())
	return kvap || passing || o.GetLabels()["app.kubernetes.io/managed-by"] == "kvap"
}

// each does something with every object of the cluster.
func (c *conformer) each(ctx context.Context, do func(*unstructured.Unstructured) error) error {
	lists, err := c.kinds.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return err
	}
	for _, group := range lists {
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "delete") {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(group.GroupVersion)
			list.SetKind(resource.Kind + "List")
			if err := c.judged.List(ctx, list); err != nil {
				if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsMethodNotSupported(err) {
					continue
				}
				return err
			}
			for i := range list.Items {
				if err := do(&list.Items[i]); err != nil {
					return fmt.Errorf("%s %s: %w", resource.Kind, list.Items[i].GetName(), err)
				}
			}
		}
	}
	return nil
}

// eventuallyIn asks until there is nothing to say against it, for some time.
func eventuallyIn(ctx context.Context, patience time.Duration, ask func() (string, error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		why, err := ask()
		if why == "" || err != nil {
			return err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return errors.New(why)
		}
	}
}

func within30(ctx context.Context, ask func() (string, error)) error {
	return eventuallyIn(ctx, 30*time.Second, ask)
}
