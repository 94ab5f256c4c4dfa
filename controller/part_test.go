package controller

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// packed is a native policy of the rules p/a and q/b, in this order or the other.
func packed() (*nativePolicy, *nativeBinding) {
	p := &nativePolicy{}
	p.Name, p.Annotations = "pack", map[string]string{vap.TranslationAnnotation: asJSON(vap.Translation{
		Members:     []vap.TranslatedMember{{Policy: "p", Rule: "a"}, {Policy: "q", Rule: "b"}},
		Validations: []vap.TranslatedExpression{{Member: 0}, {Member: 1}, {Member: 0}},
		Guard:       "guard",
	})}
	p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "guard", Expression: "a || b"}, {Name: "both", Expression: "c"}}
	p.Spec.Variables = []admissionregistrationv1.Variable{{Name: "x", Expression: "1"}, {Name: "y", Expression: "variables.x + 1"}, {Name: "x2", Expression: "2"}}
	p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "variables.y == 1"}, {Expression: "variables.x2 == 1"}, {Expression: "true", Message: "m"}}
	return p, &nativeBinding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "pack", ValidationActions: []admissionregistrationv1.ValidationAction{"Deny"}}}
}

// A part is as before exactly where nothing has changed that the rule is judged by.
func TestParts(t *testing.T) {
	was, binding := packed()
	before := partsOf(was, []client.Object{binding})
	if len(before) != 2 || before["p/a"] == before["q/b"] {
		t.Fatalf("parts: %v", before)
	}
	for name, tt := range map[string]struct {
		change func(p *nativePolicy, b *nativeBinding)
		same   []string
	}{
		"nothing":                       {func(*nativePolicy, *nativeBinding) {}, []string{"p/a", "q/b"}},
		"the guard":                     {func(p *nativePolicy, _ *nativeBinding) { p.Spec.MatchConditions[0].Expression = "a" }, []string{"p/a", "q/b"}},
		"another's expression":          {func(p *nativePolicy, _ *nativeBinding) { p.Spec.Validations[1].Expression = "false" }, []string{"p/a"}},
		"another's variable":            {func(p *nativePolicy, _ *nativeBinding) { p.Spec.Variables[2].Expression = "3" }, []string{"p/a"}},
		"a variable behind a variable":  {func(p *nativePolicy, _ *nativeBinding) { p.Spec.Variables[0].Expression = "3" }, []string{"q/b"}},
		"a message":                     {func(p *nativePolicy, _ *nativeBinding) { p.Spec.Validations[2].Message = "n" }, []string{"q/b"}},
		"what is matched":               {func(p *nativePolicy, _ *nativeBinding) { p.Spec.MatchConditions[1].Expression = "d" }, nil},
		"what follows from a violation": {func(_ *nativePolicy, b *nativeBinding) { b.Spec.ValidationActions[0] = "Audit" }, nil},
		"the name of a variable": {func(p *nativePolicy, _ *nativeBinding) {
			p.Spec.Variables[2].Name, p.Spec.Validations[1].Expression = "x3", "variables.x3 == 1"
		}, []string{"p/a", "q/b"}},
		"what is added to messages": {func(p *nativePolicy, _ *nativeBinding) { p.Spec.Validations[1].MessageExpression = "'b' + variables.y" }, []string{"p/a", "q/b"}},
		"another rule is gone": {func(p *nativePolicy, _ *nativeBinding) {
			p.Annotations[vap.TranslationAnnotation] = asJSON(vap.Translation{
				Members: []vap.TranslatedMember{{Policy: "q", Rule: "b"}}, Validations: []vap.TranslatedExpression{{}}, Guard: "guard",
			})
			p.Spec.Validations, p.Spec.Variables = p.Spec.Validations[1:2], p.Spec.Variables[2:]
		}, nil}, // alone, it is judged by the guard too
	} {
		p, b := packed()
		tt.change(p, b)
		got := commonParts(map[string]parts{"pack": before}, map[string]parts{"pack": partsOf(p, []client.Object{b})})["pack"]
		if same := slices.Sorted(maps.Keys(got)); !slices.Equal(same, tt.same) {
			t.Errorf("%s: the same are %v, want %v", name, same, tt.same)
		}
	}
	alone := func(guard string) parts {
		p, b := packed()
		p.Annotations[vap.TranslationAnnotation] = asJSON(vap.Translation{
			Members: []vap.TranslatedMember{{Policy: "q", Rule: "b"}}, Validations: []vap.TranslatedExpression{{}}, Guard: "guard",
		})
		p.Spec.MatchConditions[0].Expression, p.Spec.Validations = guard, []admissionregistrationv1.Validation{{Expression: "false"}}
		return partsOf(p, []client.Object{b})
	}
	if was, now := alone("a"), alone("b"); was["q/b"] == "" || was["q/b"] == now["q/b"] {
		t.Errorf("a rule that its guard says all of is the same behind another: %v, %v", was, now)
	}
	p, _ := packed()
	if unbound := partsOf(p, nil); len(unbound) > 0 {
		t.Errorf("of what nothing binds: %v", unbound)
	}
}

// Where a rule changes its part does, also where what changes is said by the guard alone, or
// by a condition that all rules of the object share.
func TestPartsOfRulesThatChange(t *testing.T) {
	const head = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:`
	const rule = `
  - name: NAME
    match: {any: [{resources: {kinds: [KIND], operations: [CREATE], namespaces: ["web-*"]}}]}
    preconditions: {all: [{key: "{{ request.object.metadata.annotations.team || 'none' }}", operator: Equals, value: red}]}
    validate: {message: m, pattern: {spec: {PATTERN}}}`
	named := func(name, kind, pattern string) string {
		return strings.NewReplacer("NAME", name, "KIND", kind, "PATTERN", pattern).Replace(rule)
	}
	for what, source := range map[string]string{
		"a rule":                 named("a", "Service", "type: X1"),
		"a rule of controllers":  named("a", "Pod", "priorityClassName: X1"),
		"rules":                  named("a", "Service", "type: X1") + named("b", "Service", "sessionAffinity: X2"),
		"rules of controllers":   named("a", "Pod", "priorityClassName: X1") + named("b", "Pod", "schedulerName: X2"),
		"rules of several kinds": named("a", "Service", "type: X1") + named("b", "Pod", "schedulerName: X2"),
	} {
		for _, pack := range []translate.Pack{translate.PackRule, translate.PackPolicy, translate.PackMatch} {
			before, rules := partsOfSource(t, head+source, pack)
			for _, edit := range [][2]string{{"red", "blue"}, {"web-", "api-"}, {"X", "Y"}} {
				after, _ := partsOfSource(t, head+strings.ReplaceAll(source, edit[0], edit[1]), pack)
				if same := commonParts(before, after); len(same) > 0 || rules == 0 {
					t.Errorf("%s, packed by %s: with %s for %s, these are the same: %v", what, pack, edit[1], edit[0], same)
				}
			}
		}
	}
}

// partsOfSource are the parts of a policy's objects, and how many there are.
func partsOfSource(t *testing.T, source string, pack translate.Pack) (out map[string]parts, n int) {
	t.Helper()
	builtin, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	file, found := policy.Parse("p.yaml", []byte(source))
	if found.HasErrors() {
		t.Fatal(found)
	}
	res := compile.Policies(compile.Input{Policies: file.Policies}, compile.Options{Translate: translate.Options{Release: cel.Default, Schemas: builtin, Pack: pack}})
	out = map[string]parts{}
	for _, o := range res.Objects {
		var bindings []client.Object
		for _, b := range o.Bindings {
			bindings = append(bindings, b)
		}
		out[o.Policy.Name] = partsOf(o.Policy, bindings)
		n += len(out[o.Policy.Name])
	}
	return out, n
}
