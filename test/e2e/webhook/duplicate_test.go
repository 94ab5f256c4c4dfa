//go:build e2e

package webhook

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

var duplicates = flag.Int("duplicates", 200, "how many duplicates each policy is asked about")

// unique are policies by which no two Ingresses of a namespace have the same host.
func unique() map[string]string {
	return map[string]string{
		"pattern": `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: unique-hosts}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: host
    match: {any: [{resources: {kinds: [Ingress], namespaces: [unique], operations: [CREATE]}}]}
    context:
    - name: hosts
      apiCall: {urlPath: "/apis/networking.k8s.io/v1/namespaces/unique/ingresses", jmesPath: "items[].spec.rules[].host"}
    validate:
      message: The host is taken by pattern.
      deny: {conditions: {any: [{key: "{{ request.object.spec.rules[].host }}", operator: AnyIn, value: "{{ hosts }}"}]}}
`,
		"CEL": `
apiVersion: kvap.dev/v1alpha1
kind: ValidatingPolicy
metadata: {name: unique-hosts-in-cel}
spec:
  validationActions: [Deny]
  evaluation: {background: {enabled: false}}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: unique}}
    resourceRules: [{apiGroups: [networking.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [ingresses]}]
  variables:
  - name: taken
    expression: resource.List("networking.k8s.io/v1", "ingresses", object.metadata.namespace).items
  validations:
  - expression: "!object.spec.rules.exists(o, variables.taken.exists(t, t.spec.rules.exists(r, r.host == o.host)))"
    message: The host is taken by CEL.
`,
	}
}

// ingress is one for a host.
func ingress(name, host string) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "unique", Name: name},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
				}},
			}}}},
		}}},
	}
}

// A rule that lists what it is about sees what was written a moment before: of two objects that
// follow each other and may not both be there, the second is denied, however much else is written.
func TestImmediateDuplicates(t *testing.T) {
	shared.Namespace(t, "unique", nil)
	shared.start(t, "")
	put := func(t *testing.T, o *networkingv1.Ingress) {
		t.Helper()
		if err := shared.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shared.Delete(context.Background(), o) })
	}
	for i := range 100 { // the list has some length
		put(t, ingress(fmt.Sprintf("other-%d", i), fmt.Sprintf("other-%d.example.com", i)))
	}
	for kind, text := range unique() {
		t.Run(kind, func(t *testing.T) {
			shared.Apply(t, text)
			testcluster.Soon(t, "a denial", func() bool {
				return isTaken(shared.Create(t.Context(), ingress("one", "other-1.example.com"), client.DryRunAll), kind)
			})
			write := func(ctx context.Context) {
				_ = shared.Create(ctx, ingress("beside", "beside.example.com"), client.DryRunAll)
				o := ingress("other-1", "other-1.example.com")
				o.Annotations = map[string]string{"at": time.Now().String()}
				_ = shared.Update(ctx, o)
			}
			stop := testcluster.Repeat(t, write, write, write, write)
			admitted, took := 0, []time.Duration{}
			for i := range *duplicates {
				first, host := fmt.Sprintf("first-%d", i), fmt.Sprintf("%d.example.com", i)
				o := ingress(first, host)
				if err := shared.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				switch err := shared.Create(t.Context(), ingress("second", host), client.DryRunAll); {
				case err == nil:
					admitted++
					t.Logf("the duplicate %d is admitted, after %v", i, time.Since(began))
				case !isTaken(err, kind):
					t.Error(err)
				}
				took = append(took, time.Since(began))
				if err := shared.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			slices.Sort(took)
			t.Logf("of %d duplicates %d are admitted; the median took %v, one of a hundred %v", *duplicates, admitted, took[len(took)/2], took[len(took)*99/100])
			if admitted > 0 {
				t.Errorf("%d of %d duplicates are admitted", admitted, *duplicates)
			}
		})
	}
}

// isTaken reports whether it is the policy of a kind that denies: the one before may yet be in force.
func isTaken(err error, kind string) bool {
	return err != nil && strings.Contains(err.Error(), "The host is taken by "+kind+".")
}
