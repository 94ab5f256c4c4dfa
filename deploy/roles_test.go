package deploy_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/vap"
)

// A grant is what a role lets its holder do. Without a resource name it is about all.
type grant struct{ role, group, resource, name, verb string }

// grants are all that the roles of a file grant.
func grants(t *testing.T, file string) map[grant]bool {
	t.Helper()
	all := map[grant]bool{}
	for _, o := range objects(t, file) {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		var role rbacv1.ClusterRole // of which a Role has the rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, r := range role.Rules {
			names := r.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, name := range names {
						for _, verb := range r.Verbs {
							all[grant{role.Name, group, resource, name, verb}] = true
						}
					}
				}
			}
		}
	}
	return all
}

// With the webhook the controller does what it does without, and more.
func TestWebhookTakesNoGrant(t *testing.T) {
	without, with := grants(t, "kustomize/base/kvap.yaml"), grants(t, "kustomize/webhook/kvap.yaml")
	if len(without) < 20 {
		t.Fatalf("the base has only %d grants", len(without))
	}
	for g := range without {
		if !with[g] {
			t.Errorf("with the webhook, %s may not %s %s of %q", g.role, g.verb, g.resource, g.group)
		}
	}
}

// denied are what the controller may write although a policy on every kind can deny it.
// Nothing depends on events, reports, questions and what policies say of themselves; the Secret and the ConfigMap are in
// kvap's own namespace, which can be left out (docs/controller.md, "What no policy judges").
func denied(g grant) bool {
	switch g.group + "/" + g.resource {
	case "/events", "events.k8s.io/events", "openreports.io/reports", "openreports.io/clusterreports",
		"wgpolicyk8s.io/policyreports", "wgpolicyk8s.io/clusterpolicyreports", "authorization.k8s.io/subjectaccessreviews":
		return true
	case "kvap.dev/clusterpolicies/status", "kvap.dev/policies/status", "kvap.dev/validatingpolicies/status", "kvap.dev/namespacedvalidatingpolicies/status":
		return true
	case "/secrets":
		return g.name == "kvap-webhook-tls" || g.name == "" && g.verb == "create"
	case "/configmaps":
		return g.name == "kvap-generated" || g.name == "" && g.verb == "create"
	}
	return false
}

// Of the kinds that the controller writes, a policy on every kind leaves out all that
// policies are kept in force by, and taken out of force. (Native policies and bindings are
// judged by none.)
func TestNoPolicyJudgesWhatTheControllerWrites(t *testing.T) {
	own := vap.OwnObjects([]vap.ResourceRule{{Groups: []string{"*"}, Versions: []string{"*"}, Resources: []string{"*/*"}, Operations: []string{"*"}}})
	leftOut := func(g grant) bool {
		return slices.ContainsFunc(own, func(r vap.ResourceRule) bool {
			return slices.Contains(r.Groups, g.group) && slices.Contains(r.Resources, g.resource) && slices.Contains(r.Operations, "*")
		})
	}
	// What users may write, and the chart's values have it write besides.
	others := []string{"kvap-admin", "kvap-view"}
	read := []string{"get", "list", "watch"}
	found := 0
	for _, file := range []string{"kustomize/base/kvap.yaml", "kustomize/webhook/kvap.yaml", "chart/testdata/full.yaml"} {
		for g := range grants(t, file) {
			native := g.group == "admissionregistration.k8s.io" && (strings.HasPrefix(g.resource, "validatingadmissionpolic") || strings.HasPrefix(g.resource, "mutatingadmissionpolic"))
			if slices.Contains(read, g.verb) || slices.Contains(others, g.role) || native || denied(g) {
				continue
			}
			if !leftOut(g) {
				t.Errorf("%s: a policy on every kind can keep %s from doing this: %s %s of %q", file, g.role, g.verb, g.resource, g.group)
			}
			found++
		}
	}
	if found < 40 {
		t.Errorf("the controller writes only %d things", found)
	}
}
