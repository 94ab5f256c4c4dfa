package registration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/policy"
)

// maxObject is about what etcd takes, less what the API server adds: who has written each field.
const maxObject = 1 << 20

// written are the configurations as they are written.
func written(t *testing.T, policies []*policy.Policy) ([]Configurations, []Problem) {
	t.Helper()
	served := Table{
		{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}, {Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true},
	}
	out, problems, err := Shards(policies, served, options())
	if err != nil {
		t.Fatal(err)
	}
	return out, problems
}

// lookup is a Policy of a namespace that only the webhook judges, with match conditions.
func lookup(namespace, name string, conditions ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: %s, namespace: %s}\nspec:\n", name, namespace)
	if len(conditions) > 0 {
		b.WriteString("  webhookConfiguration:\n    matchConditions:\n")
		for i, c := range conditions {
			fmt.Fprintf(&b, "    - {name: c%d, expression: \"%s\"}\n", i, c)
		}
	}
	b.WriteString("  rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {failureAction: Enforce, message: m, pattern: {metadata: {name: \"?*\"}}}}]\n")
	return b.String()
}

// Policies of many namespaces that ask for the same are one entry for each object, with or
// without match conditions.
func TestEntriesAreMerged(t *testing.T) {
	for name, conditions := range map[string][]string{"plain": nil, "with conditions": {"request.operation == 'CREATE'"}} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for i := range 700 {
				text.WriteString(lookup(fmt.Sprintf("team-%d", i), "p", conditions...))
			}
			objects, problems := written(t, parse(t, []byte(text.String())))
			if len(problems) > 0 {
				t.Error(problems)
			}
			entries, selected := 0, map[string]int{}
			for _, o := range objects {
				entries += len(o.Validating.Webhooks)
				for _, w := range o.Validating.Webhooks {
					for _, e := range w.NamespaceSelector.MatchExpressions {
						if e.Operator == "In" {
							for _, name := range e.Values {
								selected[name]++
							}
						}
					}
				}
			}
			if entries > 8 {
				t.Errorf("%d entries", entries)
			}
			for i := range 700 {
				if selected[fmt.Sprintf("team-%d", i)] != 1 {
					t.Fatalf("requests of team-%d are sent %d times", i, selected[fmt.Sprintf("team-%d", i)])
				}
			}
		})
	}
}

// What a namespace's policies ask for at length is left out by itself, and no object is larger
// than the API server takes: those of others are written.
func TestLargePoliciesAreLeftOut(t *testing.T) {
	long := "'" + strings.Repeat("x", 80_000) + "' != request.name"
	small := lookup("good", "small", "request.operation == 'CREATE'")
	clusterWide := "---\n" + strings.TrimSpace(fmt.Sprintf(denyAll, "Secret")) + "\n"
	for name, text := range map[string]string{
		"two of 800 kB": lookup("bad", "a", slices.Repeat([]string{long}, 10)...) + lookup("bad", "b", slices.Repeat([]string{long}, 10)...),
		"14 of 60 long conditions": func() (out string) {
			for i := range 14 {
				out += lookup("bad", fmt.Sprintf("p%d", i), slices.Repeat([]string{"'" + strings.Repeat("x", 1500) + "' != request.name"}, 60)...)
			}
			return out
		}(),
		"many namespaces": func() (out string) {
			for i := range 160 {
				out += lookup(fmt.Sprintf("bad-%d", i), "p", slices.Repeat([]string{fmt.Sprintf("'%d%s' != request.name", i, strings.Repeat("x", 4000))}, 10)...)
			}
			return out
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := written(t, parse(t, []byte(text+small+clusterWide)))
			asked := map[string]bool{}
			for _, o := range objects {
				if o.Validating == nil {
					continue
				}
				if data, err := json.Marshal(o.Validating); err != nil || len(data) > maxObject {
					t.Errorf("an object of %d bytes, %v", len(data), err)
				}
				for _, w := range o.Validating.Webhooks {
					if slices.ContainsFunc(w.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
						return slices.Contains(r.Resources, "secrets")
					}) {
						asked["cluster-wide"] = true
					}
					for _, e := range w.NamespaceSelector.MatchExpressions {
						if e.Operator == "In" && slices.Contains(e.Values, "good") {
							asked["small"] = true
						}
					}
				}
			}
			if !asked["cluster-wide"] || !asked["small"] {
				t.Errorf("others are asked for: %v", asked)
			}
			left := 0
			for _, p := range problems {
				if !p.Refused || !strings.HasPrefix(p.Policy.Namespace, "bad") {
					t.Errorf("%s: %s", p.Policy.FullName(), p.Message)
				}
				left++
			}
			if left == 0 {
				t.Error("nothing is left out")
			}
		})
	}
}

// Match conditions of a namespace's policy that may cost an API server much are not registered:
// its requests come as those of a policy without any.
func TestCostlyConditions(t *testing.T) {
	list := "[" + strings.Repeat("1, ", 37) + "1]"
	for name, tt := range map[string]struct {
		expression       string
		registered, left bool
	}{
		"cheap":                   {expression: "request.operation == 'CREATE' && !request.userInfo.username.startsWith('system:')", registered: true},
		"a name of the object":    {expression: "object.metadata.name != 'x'", registered: true},
		"groups":                  {expression: "request.userInfo.groups.exists(g, g in ['a', 'b'])", registered: true},
		"51,000 steps":            {expression: list + ".all(a, " + list + ".all(b, " + list + ".all(c, a + b + c > 0)))"},
		"as large as an object":   {expression: "object.data.all(k, k != 'x')"},
		"a text of the object":    {expression: "object.data.x.contains('x')"},
		"a text that grows":       {expression: "'aa'" + strings.Repeat(".replace('a', '"+strings.Repeat("a", 500)+"')", 4) + " != ''"},
		"texts of an object":      {expression: "'%s%s%s'.format([object.data.x, object.data.x, object.data.x]) != ''"},
		"who may do what, at all": {expression: "authorizer.group('').resource('pods').check('get').allowed()", left: true},
	} {
		t.Run(name, func(t *testing.T) {
			one := parse(t, []byte(lookup("team", "p", tt.expression)))[0]
			if got := EvaluatesNone(one); got == tt.registered {
				t.Errorf("API servers evaluate none: %v", got)
			}
			plain := RouteOf(parse(t, []byte(lookup("other", "p")))[0], Validate).Path()
			if got := RouteOf(one, Validate).Path(); (got == plain) == tt.registered {
				t.Errorf("the path %s", got)
			}
			objects, problems := written(t, []*policy.Policy{one})
			if said := len(problems) == 1; said == tt.registered || said && problems[0].Refused != tt.left {
				t.Error(problems)
			}
			if own := strings.Contains(fmt.Sprint(objects), tt.expression); own != tt.registered {
				t.Errorf("API servers are told of it: %v", own)
			}
		})
	}
	ofCluster := strings.NewReplacer("kind: Policy", "kind: ClusterPolicy", ", namespace: team", "").Replace(lookup("team", "p", "object.data.all(k, k != 'x')"))
	if EvaluatesNone(parse(t, []byte(ofCluster))[0]) {
		t.Error("those of a policy of the cluster are not registered")
	}
}
