//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/attempt"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// controlledAtLeast is the floor under the cases that are judged by what the controller
// makes.
const controlledAtLeast = 300

// What the controller makes of policies in the cluster denies and admits real requests as
// the fixtures' cases say, where all rules of a fixture deny. TestVerdicts has the others
// as well, with what convert writes.
func TestVerdictsByController(t *testing.T) {
	shared.everybodyMay(t)
	installKinds(t)
	shared.control(t)
	y := &tally{others: map[string][]string{}}
	for i, table := range tables(t) {
		t.Run(fmt.Sprint(i), func(t *testing.T) { shared.judgeControlled(t, table, y) })
	}
	y.tell(t, controlledAtLeast)
}

// control runs the controller until the test ends.
func (c *cluster) control(t *testing.T) {
	t.Helper()
	var definitions []controlplane.CRD
	for _, k := range controller.ForeignKinds() {
		definitions = append(definitions, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
	}
	if err := c.Plane.InstallCRDs(t.Context(), definitions...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	options := controller.Options{Mode: v1alpha1.ModeEnforce, ExcludeNamespaces: []string{}, ExceptionNamespaces: []string{"*"}}
	go func() { ended <- controller.Run(ctx, c.Config, options, logr.Discard()) }()
	t.Cleanup(func() {
		c.awaitForgotten(t) // what it made must not be there for tests after this one
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	})
}

// awaitForgotten waits until the controller has removed what it made of policies that are
// gone: it removes a PolicyTranslation after the native objects.
func (c *cluster) awaitForgotten(t *testing.T) {
	t.Helper()
	testcluster.Soon(t, "what was there before is gone", func() bool {
		var left v1alpha1.PolicyTranslationList
		return c.List(context.Background(), &left) == nil && len(left.Items) == 0
	})
}

// judgeControlled has the controller enforce those fixtures of a table of which every rule
// denies, and puts their cases before the server.
func (c *cluster) judgeControlled(t *testing.T, table []*attempt.Guest, y *tally) {
	t.Helper()
	var trials []*trial
	var sources []*unstructured.Unstructured
	c.awaitForgotten(t)
	for _, g := range table {
		x := newTrial(t, g, form{"match", "auto"})
		if g.Options != nil || !x.denies(t) {
			continue // the controller has no such option, or there is nothing to be seen of it
		}
		x.prepare(t)
		trials, sources = append(trials, x), append(sources, c.applySources(t, g.Fixture)...)
	}
	testcluster.Soon(t, "the policies are enforced", func() bool { return c.enforced(t, sources) })
	for _, x := range trials {
		t.Run(x.Name, func(t *testing.T) {
			for _, one := range x.Cases {
				x.judge(t, one, y)
			}
		})
	}
}

// denies tells that there is a native rule, and that all of them deny.
func (x *trial) denies(t *testing.T) bool {
	t.Helper()
	all := ofKind(x.objects, "ValidatingAdmissionPolicyBinding")
	return len(all) > 0 && !slices.ContainsFunc(all, func(b *unstructured.Unstructured) bool {
		actions, _, _ := unstructured.NestedStringSlice(b.Object, "spec", "validationActions")
		return !slices.Equal(actions, []string{"Deny"})
	})
}

// applySources makes the policies and exceptions of a fixture until the end of the test,
// through the server that does not judge: a policy in force may refuse to let itself go.
func (c *cluster) applySources(t *testing.T, f fixtures.Fixture) []*unstructured.Unstructured {
	t.Helper()
	unjudged, err := client.New(c.second, client.Options{Scheme: c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(f.Policy), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 || !controller.Reads(o.GroupVersionKind()) {
			continue
		}
		if o.GetNamespace() == "" && strings.HasPrefix(o.GetKind(), "Policy") || o.GetKind() == "NamespacedValidatingPolicy" && o.GetNamespace() == "" {
			o.SetNamespace("default")
		}
		if o.GetNamespace() != "" {
			c.Cluster.Namespace(t, o.GetNamespace(), nil)
		}
		if err := unjudged.Create(t.Context(), o); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		t.Cleanup(func() {
			if err := unjudged.Delete(context.Background(), o); err != nil {
				t.Error(err)
			}
		})
		if o.GetKind() != "PolicyException" {
			out = append(out, o)
		}
	}
}

// enforced tells that the controller has seen all policies enforced.
func (c *cluster) enforced(t *testing.T, sources []*unstructured.Unstructured) bool {
	t.Helper()
	return !slices.ContainsFunc(sources, func(o *unstructured.Unstructured) bool {
		gvk := o.GroupVersionKind()
		ref := v1alpha1.PolicyReference{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
		have := &v1alpha1.PolicyTranslation{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: controller.TranslationName(ref)}, have); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return have.Spec.Source.UID != o.GetUID() || !meta.IsStatusConditionTrue(have.Status.Conditions, v1alpha1.ConditionEnforced)
	})
}
