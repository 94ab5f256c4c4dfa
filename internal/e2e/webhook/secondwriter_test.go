//go:build e2e

package webhook

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/internal/e2e/testcluster"
)

// ownConfigurations are the validating configurations that the controller made.
func (c *cluster) ownConfigurations(ctx context.Context) ([]admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	err := c.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/managed-by": "kvap-controller"})
	return list.Items, err
}

// versions are those of the configurations, and of the canary.
func (c *cluster) versions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	list, err := c.ownConfigurations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		out[o.Name] = o.ResourceVersion
	}
	canary := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "kvap-canary"}, canary); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	out["canary"] = canary.ResourceVersion
	return out
}

// Beside a writer that confines all webhooks further, as the admissions enforcer of AKS does
// where it is not told to leave them alone, the controller comes to rest, and its rules are in
// force.
func TestBesideAnotherWriter(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.unregister(t)
	shared.start(t, "")
	var edits atomic.Int64
	stop := testcluster.Repeat(t, func(ctx context.Context) {
		defer time.Sleep(20 * time.Millisecond)
		list, err := shared.ownConfigurations(ctx)
		if err != nil {
			return
		}
		for i := range list {
			changed := false
			for j := range list[i].Webhooks {
				s := list[i].Webhooks[j].NamespaceSelector
				if !slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == "control-plane" }) {
					s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist})
					changed = true
				}
			}
			if changed && shared.Update(ctx, &list[i]) == nil {
				edits.Add(1)
			}
		}
	})
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	testcluster.Soon(t, "the controller rests", func() bool {
		before := shared.versions(t)
		time.Sleep(3 * time.Second)
		return maps.Equal(before, shared.versions(t))
	})
	if n := edits.Load(); n == 0 || n > 10 {
		t.Errorf("the other writer had to write %d times", n)
	}
	shared.denied(t, unowned)
	stop()
}

// A configuration that has lost its label is repaired, and one that was given away is left to
// whom it was given: its rules are judged by another.
func TestGivenAway(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.unregister(t)
	shared.start(t, "")
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	names := func() (out []string) {
		list, err := shared.ownConfigurations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			if o.Name != "kvap-webhook-probe" {
				out = append(out, o.Name)
			}
		}
		return out
	}
	first := names()[0]
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: first}}
	label := func(value string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"app.kubernetes.io/managed-by": `+value+`}}}`))
		if err := shared.Patch(t.Context(), configuration.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	label("null")
	testcluster.Soon(t, "the label is back", func() bool { return slices.Contains(names(), first) })
	label(`"Helm"`)
	testcluster.Soon(t, "another configuration", func() bool { return len(names()) > 0 && !slices.Contains(names(), first) })
	if err := shared.Delete(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	shared.denied(t, unowned)
	testcluster.Soon(t, "the first name again", func() bool { return slices.Equal(names(), []string{first}) })
	shared.denied(t, unowned)
}
