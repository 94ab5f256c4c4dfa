package registration_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/controller/webhook/registration"
)

// API servers ask about policies that are created or updated, go on where nobody answers, and
// do not ask about what the program writes, deletes or says in a status.
func TestPolicies(t *testing.T) {
	for _, kyverno := range []bool{false, true} {
		c := registration.Policies(registration.Options{URL: "https://kvap:9443"}, `it's "kvap"`, kyverno)
		w := c.Webhooks[0]
		if c.Name != registration.PoliciesName || len(c.Webhooks) != 1 || *w.FailurePolicy != admissionregistrationv1.Ignore || *w.ClientConfig.URL != "https://kvap:9443/policies" {
			t.Errorf("the configuration is %+v", c)
		}
		if want := `!(request.userInfo.username in ['it\'s "kvap"'])`; w.MatchConditions[0].Expression != want {
			t.Errorf("the condition is %s, want %s", w.MatchConditions[0].Expression, want)
		}
		var groups []string
		for _, r := range w.Rules {
			groups = append(groups, r.APIGroups...)
			if slices.Contains(r.Operations, admissionregistrationv1.Delete) || slices.Contains(r.Resources, "*") {
				t.Errorf("the rule %+v", r)
			}
		}
		want := []string{"kvap.dev"}
		if kyverno {
			want = append(want, "kyverno.io", "policies.kyverno.io")
		}
		if !slices.Equal(groups, want) {
			t.Errorf("the groups are %v, want %v", groups, want)
		}
		if err := registration.Check(registration.Configurations{Validating: c}); err != nil {
			t.Error(err)
		}
	}
}
