//go:build e2e

package migrate

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// unique lets no two Ingresses have a host: the rule asks for those that there are.
const unique = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unique}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: host
    match: {any: [{resources: {kinds: [Ingress], namespaces: [shop], operations: [CREATE]}}]}
    context:
    - {name: hosts, apiCall: {urlPath: /apis/networking.k8s.io/v1/namespaces/shop/ingresses, jmesPath: "items[].spec.rules[].host"}}
    validate:
      message: another Ingress has the host
      deny: {conditions: {any: [{key: "{{ request.object.spec.rules[].host }}", operator: AnyIn, value: "{{ hosts }}"}]}}
`

func ingress(name, host string) *networkingv1.Ingress {
	path := networkingv1.PathTypePrefix
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: "/", PathType: &path,
				Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}}},
			}}}},
		}}},
	}
}

// Kyverno asks the API server, and kvap's webhook answers from what it watches, which is late:
// an object that was made or deleted a moment ago is there for one of them alone. That is not
// a disagreement on the rule.
func TestWhatIsAskedChanges(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, strings.TrimSpace(unique))
	c.control(t)
	c.migrate(t, 0, "shadow", "unique")
	c.makeAndDelete(t, ingress("other", "other.example")) // the list is not empty, and is watched
	testcluster.Soon(t, "the webhook judges by the rule, and says so", func() bool {
		_ = c.Create(t.Context(), ingress("probe", "other.example"), client.DryRunAll)
		log, err := os.ReadFile(c.Plane.AuditLog())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(log), `.webhook.kvap.dev/violations`)
	})
	for i := range 60 {
		var options []client.CreateOption
		if i%2 == 0 {
			options = append(options, client.DryRunAll)
		}
		taken := ingress(fmt.Sprint("taken-", i), "shop.example")
		if err := c.Create(t.Context(), taken); err != nil {
			t.Fatal(err)
		}
		if err := c.Create(t.Context(), ingress(fmt.Sprint("taken-too-", i), "shop.example"), options...); err == nil {
			t.Error("Kyverno admits two of a host")
		}
		if err := c.Delete(t.Context(), taken); err != nil {
			t.Fatal(err)
		}
		free := ingress(fmt.Sprint("free-", i), "shop.example")
		if err := c.Create(t.Context(), free, options...); err != nil {
			t.Error(err)
		}
		if err := c.Delete(t.Context(), free); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	out, _ := c.try(t, "compare", "unique", "--verify", "0", "--audit-log", c.Plane.AuditLog())
	row := strings.Fields(lineOf(out, "unique")) // POLICY RULE JUDGED SEEN AGREED DISAGREED
	if len(row) < 6 || row[4] == "0" || row[5] != "0" {
		t.Errorf("%v, want no disagreement, and some agreement", row)
	}
}

// makeAndDelete makes an object, and deletes it when the test ends.
func (c *cluster) makeAndDelete(t *testing.T, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), o); err != nil {
			t.Error(err)
		}
	})
}
