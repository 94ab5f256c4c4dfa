package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// A panic is a diagnostic with the place of the policy and the function at fault.
func TestGuard(t *testing.T) {
	at := diag.Pos{File: "p.yaml", Line: 3}
	var none *span
	for name, do := range map[string]func(){
		"a nil pointer": func() { none.line++ },
		"a value":       func() { panic("oops") },
	} {
		fault := guard(at, do)
		if fault == nil || fault.Code != diag.CompilerFault || fault.Pos != at || !strings.Contains(fault.Message, "in compile.TestGuard") {
			t.Errorf("%s: %+v", name, fault)
		}
	}
	if fault := guard(at, func() {}); fault != nil {
		t.Errorf("nothing panicked: %+v", fault)
	}
}

// Of an object whose guard an API server would refuse, only the guard goes.
func TestRefusedGuard(t *testing.T) {
	for name, guard := range map[string]cel.Bool{
		"does not compile": cel.Ident("nonsense").Has("a"),
		"is too long":      cel.Ident("object").Field("kind").Eq(cel.String(strings.Repeat("x", 110_000))),
	} {
		message := cel.String("m")
		d := &vap.Draft{
			Base: "p", Members: []vap.Member{{Policy: "p", Rule: "r"}},
			Constraints: vap.Constraints{Rules: []vap.ResourceRule{{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []string{"CREATE"}}}},
			Conditions:  []vap.Condition{{Name: "c", Expr: cel.Ident("object").Has("spec")}},
			Guard:       guard,
			Validations: []vap.Validation{{Expr: cel.Ident("object").Has("metadata"), Message: "m", More: &message}},
			Bindings:    []vap.Binding{{Actions: []string{"Deny"}}},
		}
		emitter := vap.NewEmitter(vap.EmitOptions{})
		o, found := emitter.InCluster(vap.Emit(d, vap.EmitOptions{}))
		if len(found) > 0 {
			t.Fatalf("%s: %v", name, found)
		}
		objects := []vap.Objects{o}
		r := &refusals{drafts: []*vap.Draft{d}}
		r.invalid(objects, emitter, cores.NewCrew(), cores.NewPool(func() *apiserver.Checker { return apiserver.NewChecker(cel.Latest) }), nil)
		p := objects[0].Policy
		if len(r.why) > 0 || p.Name != o.Policy.Name || len(p.Spec.MatchConditions) != 1 || p.Spec.Validations[0].MessageExpression != "" {
			t.Errorf("%s: refused are %v, the policy is %+v", name, r.why, p)
		}
		if m, _, _ := vap.TranslationOf(p.Annotations); m.Guard != "" {
			t.Errorf("%s: the source map speaks of the guard %q", name, m.Guard)
		}
	}
}

// An object that has lost its guard is validated like any other: what was not to be said in the
// guard may not be said in the validation either.
func TestRefusedGuardAndValidation(t *testing.T) {
	illTyped := cel.True().Eq(cel.List())
	d := &vap.Draft{
		Base: "p", Members: []vap.Member{{Policy: "p", Rule: "r"}},
		Constraints: vap.Constraints{Rules: []vap.ResourceRule{{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []string{"CREATE"}}}},
		Guard:       cel.Not(illTyped),
		Validations: []vap.Validation{{Expr: illTyped, Message: "m", Left: cel.False()}},
		Bindings:    []vap.Binding{{Actions: []string{"Deny"}}},
	}
	emitter := vap.NewEmitter(vap.EmitOptions{})
	o, found := emitter.InCluster(vap.Emit(d, vap.EmitOptions{}))
	if len(found) > 0 {
		t.Fatal(found)
	}
	r := &refusals{drafts: []*vap.Draft{d}}
	r.invalid([]vap.Objects{o}, emitter, cores.NewCrew(), cores.NewPool(func() *apiserver.Checker { return apiserver.NewChecker(cel.Latest) }), nil)
	if why := r.why[d][0]; why.Code != diag.InvalidObject {
		t.Errorf("the rule is not refused: %v", r.why)
	}
}

// A tree that grows past all bounds is no fault.
func TestGuardOfTrees(t *testing.T) {
	fault := guard(diag.Pos{}, func() {
		v := cel.Ident("object")
		for range 60 {
			v = v.Plus(v)
		}
	})
	if fault == nil || fault.Code != diag.TooLarge {
		t.Errorf("%+v", fault)
	}
}

// A policy on which the compiler fails says in which function, although its rules are
// lowered by several workers, who pass a panic on.
func TestFaultOfAPolicy(t *testing.T) {
	f, _ := policy.Parse("p.yaml", []byte(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {pattern: {metadata: {labels: {l: a}}}}
`))
	o := Options{Translate: translate.Options{Release: cel.Latest}} // without the types of kinds
	r := Policies(Input{Policies: f.Policies}, o)
	if len(r.Rules) != 1 || !slices.Equal(r.Rules[0].Codes, []diag.Code{diag.CompilerFault}) || !strings.Contains(r.Rules[0].Reason, "in schema.(*Set).Resources") {
		t.Errorf("%+v", r.Rules)
	}
}
