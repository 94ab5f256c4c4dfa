package vap

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/textdiff"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := textdiff.Values(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

func emit(t *testing.T, d *Draft, opts EmitOptions) Objects {
	t.Helper()
	o, found := Emit(d, opts)
	if len(found) > 0 {
		t.Fatalf("Emit: %v", found)
	}
	return o
}

func TestEmitGolden(t *testing.T) {
	params := teamDraft()
	params.Base = "with-params"
	params.ParamKind = &ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	params.Bindings = []Binding{
		{
			Suffix: "deny", Actions: []string{"Deny"},
			NamespaceSelector: Selector{Labels: []Label{{"tier", "prod"}}},
			ObjectSelector:    Selector{Expressions: []Requirement{{Key: "skip", Operator: "DoesNotExist"}}},
			Param:             &ParamRef{Name: "teams", Namespace: "policy"},
		},
		{
			Suffix: "audit", Actions: []string{"Warn", "Audit"},
			NamespaceSelector: Selector{Labels: []Label{{namespaceName, "lab"}}},
			Rules:             []ResourceRule{podRule()},
			Param:             &ParamRef{Selector: &Selector{Labels: []Label{{"teams", "true"}}}, NotFound: "Allow"},
		},
	}
	static := teamDraft()
	for _, tt := range []struct {
		file string
		d    *Draft
		opts EmitOptions
	}{
		{"team.yaml", teamDraft(), EmitOptions{}},
		{"params.yaml", params, EmitOptions{}},
		{"static.yaml", static, EmitOptions{Static: true, ExcludeNamespaces: []string{}}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			got, err := Marshal(emit(t, tt.d, tt.opts).All()...)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.file, got)
		})
	}
}

// What Marshal writes must read back as the object it was made from.
func TestMarshalReadsBack(t *testing.T) {
	o := emit(t, teamDraft(), EmitOptions{})
	text, err := Marshal(o.Policy)
	if err != nil {
		t.Fatal(err)
	}
	var back admissionregistrationv1.ValidatingAdmissionPolicy
	if err := sigsyaml.UnmarshalStrict(text, &back); err != nil {
		t.Fatal(err)
	}
	DefaultPolicy(&back)
	if d := textdiff.Values(o.Policy, &back); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// awkward are strings that YAML takes for something else, or cannot hold in every form.
func awkward() []string {
	return []string{
		"", "yes", "On", "n", "null", "~", "1", "1.5", "0x10", "12:30:45", "2020-01-01", "true", "a: b", "- a", "#a", "a #b", " a", "a ",
		"a\nb", "a\nb\n", "a\n\n", " a\nb", "a \nb", "tab\tb", "tab\t\nb", "é\u2028x", "'", `"`, "{a}", "!x", "%", "@", "`", "\x00", "<<", "=",
		"\n", "\n\n", "\na", "a\n\nb\n\n\n", "a\n  b\n c", "\x7f", "\u0085", "\ufeff", "\U0001f600\nb", "Null", "a:", "ä: b", "e1", ".5", "_", "k: 'v' \"w\" \\", "a, b", "a]", "a \"b\", c", "a{1,2}",
	}
}

func readsBack(t *testing.T, s string) {
	t.Helper()
	text, err := Marshal(map[string]any{"s": s, "l": []any{s, []any{s, s}, map[string]any{s: s}}})
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	var back struct {
		S string
		L []any
	}
	if err := sigsyaml.Unmarshal(text, &back); err != nil {
		t.Fatalf("%q: %v in\n%s", s, err, text)
	}
	want := []any{s, []any{s, s}, map[string]any{s: s}}
	if d := textdiff.Values(want, back.L); back.S != s || d != "" {
		t.Errorf("%q reads back as %q and %s from\n%s", s, back.S, d, text)
	}
}

func TestMarshalStrings(t *testing.T) {
	for _, s := range awkward() {
		readsBack(t, s)
	}
}

// Whatever a message or an expression holds, a reader gets the same string.
func FuzzMarshal(f *testing.F) {
	for _, s := range awkward() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			t.Skip("JSON has no other strings")
		}
		readsBack(t, s)
	})
}

func TestMarshalJSONList(t *testing.T) {
	text, err := MarshalJSON(emit(t, teamDraft(), EmitOptions{}).All()...)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Kind  string
		Items []struct{ Kind string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(list); got != "{List [{ValidatingAdmissionPolicy} {ValidatingAdmissionPolicyBinding}]}" {
		t.Errorf("got %s", got)
	}
	if strings.Contains(string(text), "creationTimestamp") || strings.Contains(string(text), `"status"`) || strings.Contains(string(text), `\u003c`) {
		t.Errorf("fields of the server, or escaped CEL:\n%s", text)
	}
}

func TestObjectName(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tt := range []struct{ parts, want string }{
		{"require-labels", "require-labels"},
		{"require-labels|Check Team", "require-labels-check-team"},
		{"team/app", "team-app"},
		{"-a-|", "a"},
		{"a-.b", "a.b"},
		{"a..b", "a.b"},
		{"Ä", "policy-" + shortHash("Ä")},
	} {
		if got := objectName(maxNameLength, strings.Split(tt.parts, "|")...); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.parts, got, tt.want)
		}
	}
	a, b := objectName(maxNameLength, long+"a"), objectName(maxNameLength, long+"b")
	if len(a) > maxNameLength || a == b {
		t.Errorf("long names: %d bytes, equal: %v", len(a), a == b)
	}
}

func TestEmitAllTellsNamesApart(t *testing.T) {
	a, b, c := teamDraft(), teamDraft(), teamDraft()
	b.Base, c.Base = "require team", "require_team"
	objects, found := EmitAll([]*Draft{a, b, c}, EmitOptions{})
	if len(found) > 0 || len(objects) != 3 {
		t.Fatalf("%d objects, %v", len(objects), found)
	}
	seen := map[string]bool{}
	for _, o := range objects {
		if seen[o.Policy.Name] {
			t.Errorf("%s twice", o.Policy.Name)
		}
		seen[o.Policy.Name] = true
	}
	if !seen["require-team"] {
		t.Errorf("the first keeps its name; got %v", seen)
	}
}

func TestConditionNames(t *testing.T) {
	got := conditionNames([]string{"a b", "a-b", "", "a/b", strings.Repeat("x", 80), strings.Repeat("x", 80), "Kind_is.Pod"})
	want := []string{"a-b", "a-b-2", "condition", "a-b-3"}
	if d := textdiff.Values(want, got[:4]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, n := range got {
		if len(n) > maxLabelLength {
			t.Errorf("%q is too long", n)
		}
	}
}

func TestManyConditionsBecomeOne(t *testing.T) {
	d := teamDraft()
	for i := range 100 {
		d.Conditions = append(d.Conditions, Condition{Name: "c", Expr: cel.Ident("request").Field("name").Ne(cel.String(fmt.Sprint(i)))})
	}
	if got := len(emit(t, d, EmitOptions{}).Policy.Spec.MatchConditions); got != 1 {
		t.Errorf("%d conditions", got)
	}
	d.Conditions = d.Conditions[:64]
	if got := len(emit(t, d, EmitOptions{}).Policy.Spec.MatchConditions); got != 64 {
		t.Errorf("%d conditions", got)
	}
	d.Conditions = []Condition{{Name: "always", Expr: cel.True()}}
	if got := len(emit(t, d, EmitOptions{}).Policy.Spec.MatchConditions); got != 0 {
		t.Errorf("%d conditions", got)
	}
}

func TestMessageGuards(t *testing.T) {
	name := object.Field("metadata").Field("name")
	cheap := cel.String("not ").Plus(name)
	dear := cheap
	for range 1000 { // each adds a text of some length to all before it
		dear = dear.Plus(name)
	}
	long := cel.False()
	for i := range 20 {
		long = cel.Or(long, name.Eq(cel.String(fmt.Sprint("name", i))))
	}
	asks := cel.Ident("authorizer").Call("group", cel.String("")).Call("resource", cel.String("pods")).Call("check", cel.String("get")).Call("allowed").AsBool()
	for _, tt := range []struct {
		name     string
		check    cel.Bool
		says     cel.Value
		message  string // beginning of the message expression
		variable int
	}{
		{"a message that costs little stands alone", long, cheap, `'not ' + object.metadata.name`, 0},
		{"a short check is repeated", name.Eq(cel.String("a")), dear, `object.metadata.name == 'a' ? '' : 'not '`, 0},
		{"a long check becomes a variable", long, dear, `variables.holds ? '' : `, 1},
		{"what always holds says nothing", cel.True(), dear, ``, 0},
		{"a message cannot ask the authorizer", asks, dear, `'not ' + object.metadata.name`, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := teamDraft()
			d.Members = d.Members[:1]
			d.Validations = []Validation{{Expr: tt.check, Message: "m", MessageExpression: &tt.says}}
			o := emit(t, d, EmitOptions{})
			got := strings.ReplaceAll(strings.Join(strings.Fields(o.Policy.Spec.Validations[0].MessageExpression), " "), `"`, `'`)
			if !strings.HasPrefix(got, tt.message) || tt.message == "" && got != "" {
				t.Errorf("got %s", got)
			}
			if len(o.Policy.Spec.Variables) != tt.variable {
				t.Errorf("variables: %v", o.Policy.Spec.Variables)
			}
		})
	}
}

func TestEmitRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Draft)
		opts   EmitOptions
		want   diag.Code
	}{
		{"an expression too long", func(d *Draft) {
			d.Validations[0].Expr = object.Eq(cel.String(strings.Repeat("x", MaxExpressionLength)))
		}, EmitOptions{}, diag.ExpressionTooLong},
		{"a variable with two meanings", func(d *Draft) { d.Variables[1].Expr = cel.Int(2) }, EmitOptions{}, diag.InvalidObject},
		{"params in a static policy", func(d *Draft) { d.ParamKind = &ParamKind{"v1", "ConfigMap"} }, EmitOptions{Static: true}, diag.StaticParams},
		{"many audit annotations", func(d *Draft) { d.Audits = make([]Audit, 21); fill(d.Audits) }, EmitOptions{}, diag.InvalidObject},
		{"a long audit annotation", func(d *Draft) {
			d.Audits = []Audit{{Key: "a", Value: cel.String(strings.Repeat("x", MaxAuditExpression))}}
		}, EmitOptions{}, diag.ExpressionTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := teamDraft()
			tt.change(d)
			o, found := Emit(d, tt.opts)
			if o.Policy != nil || len(found) != 1 || found[0].Code != tt.want || found[0].Severity != diag.Error {
				t.Errorf("got %v, %v", o.Policy, found)
			}
		})
	}
}

func fill(as []Audit) {
	for i := range as {
		as[i] = Audit{Key: fmt.Sprint("k", i), Value: cel.String("v")}
	}
}

func TestTranslationOf(t *testing.T) {
	o := emit(t, teamDraft(), EmitOptions{})
	got, ok, err := TranslationOf(o.Policy.Annotations)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	want := Translation{
		Members: []TranslatedMember{
			{Policy: "require-team", Rule: "team", File: "team.yaml", Path: "spec.rules[0]"},
			{Policy: "require-team", Rule: "host", File: "team.yaml", Path: "spec.rules[1]"},
		},
		Validations: []TranslatedExpression{{Member: 0, Path: "spec.rules[0].validate"}, {Member: 1, Path: "spec.rules[1].validate"}},
	}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, ok, err := TranslationOf(nil); ok || err != nil {
		t.Error("a policy written by hand has no translation")
	}
	for _, bad := range []string{"{", `{"members":[],"validations":[{"member":0}]}`} {
		if _, _, err := TranslationOf(map[string]string{TranslationAnnotation: bad}); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// The forms of one rule have one line of provenance.
func TestTranslationOfForms(t *testing.T) {
	d := teamDraft()
	form := d.Members[0]
	d.Members[0].Resources = []string{"pods"}
	form.Rule, form.Resources = "autogen-team", []string{"jobs"}
	form.Origin = "team"
	d.Members = slices.Insert(d.Members, 1, form)
	d.Validations[0].Also, d.Validations[1].Member = []int{1}, 2
	o := emit(t, d, EmitOptions{})
	if n := strings.Count(o.Policy.Annotations[SourceAnnotation], "\n"); n != 1 {
		t.Errorf("%d line breaks in %s", n, o.Policy.Annotations[SourceAnnotation])
	}
	got, _, err := TranslationOf(o.Policy.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	if d := textdiff.Values(d.Translation(), got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What stands for a Pod and for a template is a variable to validations; in match conditions it
// is written out where it is read once, or it, or what all reads have in common, is the one element of a list. The old one, which may not be there, is never that.
func TestPods(t *testing.T) {
	pod, old := cel.Ident(PodName), cel.Ident(OldPodName)
	is := func(v cel.Value, field string) cel.Bool { return v.Field("spec").Field(field).AsBool() }
	d := teamDraft()
	d.Pods, d.Deletes = true, true
	d.Constraints.Rules[0].Operations = []string{"CREATE", "UPDATE", "DELETE"}
	d.Conditions = []Condition{
		{Name: "once", Expr: is(pod, "a")},
		{Name: "twice", Expr: cel.And(is(pod, "a"), is(pod, "b"))},
		{Name: "old", Expr: cel.And(is(old, "a"), is(old, "b"))},
		{Name: "none", Expr: cel.Ident("request").Field("dryRun").AsBool()},
	}
	d.Guard, d.Variables = cel.True(), []Variable{{Name: "pod", Expr: cel.Int(1)}}
	d.Validations = d.Validations[:1]
	d.Validations[0].Expr, d.Validations[0].MessageExpression, d.Validations[0].More = cel.And(is(pod, "a"), cel.Not(is(old, "a"))), nil, nil
	var got []string
	spec := emit(t, d, EmitOptions{}).Policy.Spec
	for _, c := range spec.MatchConditions {
		got = append(got, c.Expression)
	}
	for _, v := range spec.Variables {
		got = append(got, v.Name+": "+v.Expression)
	}
	got = append(got, spec.Validations[0].Expression)
	want := []string{
		"[object == null ? oldObject : object].exists(o, o.spec.?template.orValue(o).spec.a)",
		"[object == null ? oldObject : object].exists(o,\n  [o.spec.?template.orValue(o).spec].exists(spec, spec.a && spec.b)\n)",
		"oldObject.spec.?template.orValue(oldObject).spec.a &&\noldObject.spec.?template.orValue(oldObject).spec.b",
		"request.dryRun",
		"subject: object == null ? oldObject : object",
		"pod2: dyn(variables.subject.spec).?template.orValue(variables.subject)",
		"oldPod: dyn(oldObject.spec).?template.orValue(oldObject)",
		"variables.pod2.spec.a && !variables.oldPod.spec.a",
	}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func BenchmarkEmit(b *testing.B) {
	d := teamDraft()
	b.ReportAllocs()
	for b.Loop() {
		o, found := Emit(d, EmitOptions{})
		if len(found) > 0 {
			b.Fatal(found)
		}
		if _, err := Marshal(o.All()...); err != nil {
			b.Fatal(err)
		}
	}
}

// A name that somebody else has, for a policy or for a binding, goes to no object; the
// name in its place is always the same.
func TestTakenNames(t *testing.T) {
	named := func(taken ...string) string {
		t.Helper()
		d := &Draft{
			Base: "labels", Constraints: Constraints{Rules: []ResourceRule{{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []string{"CREATE"}}}},
			Validations: []Validation{{Expr: cel.False(), Message: "no"}}, Members: []Member{{Policy: "labels", Rule: "r"}},
			Bindings: []Binding{{Actions: []string{"Deny"}}, {Suffix: "audit", Actions: []string{"Audit"}}},
		}
		all, found := EmitAll([]*Draft{d}, EmitOptions{Taken: taken})
		if len(found) > 0 {
			t.Fatal(found)
		}
		for _, b := range all[0].Bindings {
			if b.Spec.PolicyName != all[0].Policy.Name || slices.Contains(taken, b.Name) {
				t.Errorf("the binding %s is of %s", b.Name, b.Spec.PolicyName)
			}
		}
		return all[0].Policy.Name
	}
	if got := named("others"); got != "labels" {
		t.Errorf("nobody has the name: %s", got)
	}
	other := named("labels")
	if other == "labels" || other != named("labels", "others") || other != named("labels-audit") {
		t.Errorf("taken: %s, %s, %s", other, named("labels", "others"), named("labels-audit"))
	}
	if got := named("labels", other); got == "labels" || got == other {
		t.Errorf("taken twice: %s", got)
	}
}
