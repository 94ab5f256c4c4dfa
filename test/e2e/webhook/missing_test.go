//go:build e2e

package webhook

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// inTeam is a policy about Secrets whose name begins with team, which are of a team that a
// ConfigMap names.
const inTeam = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: in-team}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Secret], names: ["team-*"]}}]}
    context:
    - name: allowed
      configMap: {name: missing-teams, namespace: default}
    preconditions:
      all:
      - {key: "{{ request.object.metadata.labels.free || '' }}", operator: NotEquals, value: "yes"}
    validate:
      message: The team is not allowed.
      deny:
        conditions:
          any:
          - {key: "{{ request.object.metadata.labels.team || '' }}", operator: NotEquals, value: "{{ allowed.data.team }}"}
`

func secretOf(name, team string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: default, labels: {team: " + team + "}}"
}

// While a ConfigMap is missing that a rule reads, what the rule matches is refused and
// nothing else is, wherever the ConfigMap comes and goes: API servers would refuse every
// Secret.
func TestMissingConfigMap(t *testing.T) {
	shared.start(t, "")
	shared.Apply(t, inTeam)
	testcluster.Soon(t, "the policy says that the ConfigMap is missing", func() bool { return shared.says(t, "in-team", "Missing") })
	another := func() {
		t.Helper()
		if _, err := shared.try(t.Context(), t, secretOf("another", "blue")); err != nil {
			t.Fatalf("what the rule is not about: %v", err)
		}
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "missing-teams", Namespace: "default"}, Data: map[string]string{"team": "red"}}
	for range 2 {
		testcluster.Soon(t, "what the rule matches is refused", func() bool {
			another()
			_, err := shared.try(t.Context(), t, secretOf("team-a", "red"))
			return err != nil && strings.Contains(err.Error(), "missing-teams")
		})
		cm.ResourceVersion = ""
		if err := shared.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		testcluster.Soon(t, "red is allowed, by the API server alone", func() bool {
			another()
			_, err := shared.try(t.Context(), t, secretOf("team-a", "red"))
			return err == nil && !shared.says(t, "in-team", "Missing")
		})
		if _, err := shared.try(t.Context(), t, secretOf("team-a", "blue")); !apierrors.IsInvalid(err) {
			t.Errorf("blue: %v", err)
		}
		shared.configurations(t, "ValidatingWebhookConfiguration", 0)
		if err := shared.Delete(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
	}
}

// A rule about a kind that is defined later is served soon after.
func TestKindAppears(t *testing.T) {
	kind := apischema.GroupVersionKind{Group: "later.io", Version: "v1", Kind: "Widget"}
	shared.start(t, "")
	shared.Apply(t, `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: widgets}
spec:
  background: false
  rules:
  - name: colour
    match: {any: [{resources: {kinds: [later.io/v1/Widget]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(colour): red}}}}
`)
	testcluster.Soon(t, "the policy says that the kind is not served", func() bool {
		return strings.Contains(shared.message(t, "widgets", "FallbackActive"), "serves no kind")
	})
	defined := time.Now()
	if err := shared.Plane.InstallCRDs(t.Context(), controlplane.StandIn(kind, "widgets", true)); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "a widget is red", func() bool {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetName("one")
		o.SetNamespace("default")
		return shared.Create(t.Context(), o, client.DryRunAll) == nil && o.GetLabels()["colour"] == "red"
	})
	t.Logf("after %v", time.Since(defined))
	testcluster.Soon(t, "the policy says so no longer", func() bool {
		return !strings.Contains(shared.message(t, "widgets", "FallbackActive"), "serves no kind")
	})
}
