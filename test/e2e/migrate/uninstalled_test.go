//go:build e2e

package migrate

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// ofKyverno are the definitions that go when Kyverno is uninstalled.
func ofKyverno() (out []controlplane.CRD) {
	for _, d := range definitions() {
		if strings.HasSuffix(d.GetName(), ".kyverno.io") {
			out = append(out, d)
		}
	}
	return out
}

// removeDefinitions takes them away, and all policies with them.
func (c *cluster) removeDefinitions(t *testing.T) {
	t.Helper()
	for _, d := range ofKyverno() {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("apiextensions.k8s.io/v1")
		o.SetKind("CustomResourceDefinition")
		o.SetName(d.GetName())
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	testcluster.Soon(t, "the definitions are gone", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("kyverno.io/v1")
		list.SetKind("ClusterPolicyList")
		return apierrors.IsNotFound(c.List(t.Context(), list))
	})
}

func (c *cluster) installDefinitions(t *testing.T) {
	t.Helper()
	if err := c.Plane.InstallCRDs(context.Background(), ofKyverno()...); err != nil {
		t.Fatal(err)
	}
}

// Kyverno is uninstalled with its definitions on the way. Each verb says what is so, and
// what comes first; what kvap enforced by policies of its own goes on; and once Kyverno is
// there again, what it had comes back from the records.
func TestUninstalled(t *testing.T) {
	c := shared
	_, stop := c.startKyverno(t)
	c.apply(t, labelledPolicy+"---"+asksPolicy+"---"+foregroundPolicy)
	c.control(t)
	t.Cleanup(func() { c.installDefinitions(t) }) // for the tests that come after
	c.migrate(t, 0, "shadow", "--all")
	stop()
	c.removeDefinitions(t)
	for _, verb := range [][]string{{"shadow", "--all"}, {"enforce", "--all", "--accept", "a test", "--yes"}, {"rollback", "--all", "--yes"}} {
		if out := c.migrate(t, 1, verb...); !strings.Contains(out, "the cluster does not know the kind ClusterPolicy of kyverno.io") || !strings.Contains(out, "the record has the policy as it was") {
			t.Errorf("%s does not say what is so", verb[0])
		}
	}
	c.migrate(t, 0, "finish")
	for _, name := range []string{"labelled", "asks", "foreground"} {
		if got := c.record(t, name); got.Stage != v1alpha1.StageShadow || got.Doing != nil || got.Original == nil {
			t.Errorf("%s: the record has %+v", name, got)
		}
	}
	c.installDefinitions(t)
	_, stop = c.startKyverno(t)
	for _, name := range []string{"labelled", "asks", "foreground"} {
		c.apply(t, c.record(t, name).Original.Policy)
	}
	s := c.streamOf(t, "foreground")
	c.migrate(t, 0, "enforce", "--all", "--accept", "a test", "--yes", "--settle", "2s")
	c.migrate(t, 0, "adopt", "asks", "--yes", "--settle", "2s")
	s.check(t, "enforce")
	stop()
	c.removeDefinitions(t)
	out := c.migrate(t, 1, "rollback", "--all", "--yes")
	for _, want := range []string{"kvap goes on enforcing", "kvap migrate rollback labelled makes it again", "install Kyverno"} {
		if !strings.Contains(out, want) {
			t.Errorf("rollback does not say %q", want)
		}
	}
	if out := c.migrate(t, 1, "finish"); !strings.Contains(out, "kvap enforces it as it read it last: kvap migrate adopt labelled") {
		t.Error("finish does not say what went with its definition, and is enforced still")
	}
	for _, name := range []string{"labelled", "asks", "foreground"} { // labelled was where it is no more
		if err := c.judged(t.Context(), probe(t, name, false)); err == nil || strings.Contains(err.Error(), "kyverno.svc") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.check(t, "Kyverno was uninstalled")
	c.installDefinitions(t)
	c.startKyverno(t)
	c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "2s")
	s.check(t, "rollback")
	s.stop()
	for _, name := range []string{"labelled", "asks", "foreground"} {
		if err := c.judged(t.Context(), probe(t, name, false)); err == nil || !strings.Contains(err.Error(), "kyverno.svc") {
			t.Errorf("%s: Kyverno does not judge by it: %v", name, err)
		}
		if got := c.record(t, name); got.Stage != v1alpha1.StageNone || got.Doing != nil {
			t.Errorf("%s: the record has %+v", name, got)
		}
	}
}
