//go:build e2e

package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// TestEvalReadsNamespaces: eval of a cluster says of an object what the API server does by a policy
// that reads an annotation of the Namespace.
func TestEvalReadsNamespaces(t *testing.T) {
	shared.Apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: owned, labels: {judged: "yes"}, annotations: {acme.io/owner: me}}
---
apiVersion: v1
kind: Namespace
metadata: {name: orphaned, labels: {judged: "yes"}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: owned}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "namespaceObject.metadata.?annotations[?'acme.io/owner'].orValue('') != ''"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: owned}
spec: {policyName: owned, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {judged: "yes"}}}}
`)
	object := func(namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: namespace}}
	}
	testcluster.Soon(t, "the policy is enforced", func() bool {
		return shared.Create(t.Context(), object("orphaned"), client.DryRunAll) != nil
	})
	if err := shared.Create(t.Context(), object("owned"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]string{"owned": `"native":"allow"`, "orphaned": `"native":"deny"`} {
		file := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "+namespace+"}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := shared.start(t, "eval", file, "-o", "jsonl")
		if code := p.code(t); code != 0 {
			t.Errorf("%s: exit code %d", namespace, code)
		}
		if out := p.out.String(); !strings.Contains(out, `"policy":"owned"`) || !strings.Contains(out, want) {
			t.Errorf("%s: got %s, want %s", namespace, out, want)
		}
	}
}
