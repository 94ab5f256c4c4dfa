package controller

import (
	"maps"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
