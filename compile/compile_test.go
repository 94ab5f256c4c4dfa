package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

func options(t testing.TB) compile.Options {
	t.Helper()
	schemas, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	return compile.Options{Translate: translate.Options{Release: cel.Latest, Schemas: schemas}}
}

func read(t testing.TB, text string) compile.Input {
	t.Helper()
	f, found := policy.Parse("p.yaml", []byte(text))
	return compile.Input{Policies: f.Policies, Exceptions: f.Exceptions, Found: found}
}

// labels is a policy with a rule for each value that the label l may have.
func labels(name string, values ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: %s}\nspec:\n  rules:\n", name)
	for i, v := range values {
		fmt.Fprintf(&b, "  - name: r%d\n    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n    validate: {pattern: {metadata: {labels: {l: %q}}}}\n", i, v)
	}
	return b.String()
}

// told is a line for each rule: where it goes, why, and its objects.
func told(r compile.Result) string {
	var b strings.Builder
	for _, rule := range r.Rules {
		fmt.Fprintf(&b, "%s/%s %s %v", rule.Policy.Name, rule.Name(), rule.Target, rule.Codes)
		for _, i := range rule.Objects {
			o := r.Objects[i]
			fmt.Fprintf(&b, " %s", o.Policy.Name)
			for _, f := range rule.Forms {
				for _, p := range f.Places {
					if p.Object == i {
						fmt.Fprintf(&b, "[%s]", o.Draft.Members[p.Member].Rule)
					}
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Of a pack, only the rule that is refused goes to the webhook.
func TestOneOfAPackIsRefused(t *testing.T) {
	long := strings.Repeat("x", 110_000)
	for _, c := range []struct {
		pack translate.Pack
		want string
	}{
		{translate.PackPolicy, "p/r0 native [] p[r0]\np/r1 webhook [KV217]\np/r2 native [] p[r2]\nq/r0 native [] q-r0[r0]\nq/r1 webhook [KV217]\n"},
		{translate.PackMatch, "p/r0 native [] kvap-configmaps-audit[r0]\np/r1 webhook [KV217]\np/r2 native [] kvap-configmaps-audit[r2]\nq/r0 native [] kvap-configmaps-audit[r0]\nq/r1 webhook [KV217]\n"},
	} {
		o := options(t)
		o.Translate.Pack = c.pack
		got := compile.Policies(read(t, labels("p", "a", long, "b")+labels("q", "c", long)), o)
		if told(got) != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.pack, told(got), c.want)
		}
		if !strings.Contains(got.Rules[1].Reason, "split the rule") {
			t.Errorf("%s: the reason is %q", c.pack, got.Rules[1].Reason)
		}
	}
}

// Rules whose guard would be too long have guards of their own.
func TestTooLongGuard(t *testing.T) {
	o := options(t)
	o.Translate.Pack = translate.PackMatch
	got := compile.Policies(read(t, labels("p", strings.Repeat("x", 40_000), strings.Repeat("y", 40_000))), o)
	if want := "p/r0 native [] kvap-configmaps-audit-p-r-up-to-0[r0]\np/r1 native [] kvap-configmaps-audit-p-r-1[r1]\n"; told(got) != want {
		t.Fatalf("got\n%swant\n%s", told(got), want)
	}
	for _, o := range got.Objects {
		if m, _, _ := vap.TranslationOf(o.Policy.Annotations); m.Guard == "" {
			t.Errorf("%s has no guard", o.Policy.Name)
		}
	}
}

// What the API server would refuse is no object, whatever the reason.
func TestRefusedBinding(t *testing.T) {
	o := options(t)
	o.Emit.ExcludeNamespaces = []string{"not a label"}
	got := compile.Policies(read(t, labels("p", "a")), o)
	if want := "p/r0 webhook [KV402]\n"; told(got) != want || len(got.Objects) > 0 {
		t.Errorf("got\n%swant\n%s", told(got), want)
	}
}

// A native rule without an object says why it needs none.
func TestNoObjectNeeded(t *testing.T) {
	got := compile.Policies(read(t, labels("p", "a")+"    preconditions: {all: [{key: a, operator: Equals, value: b}]}\n"), options(t))
	if want := "p/r0 native [KV314]\n"; told(got) != want || len(got.Diagnostics) != 1 {
		t.Errorf("got\n%s%v\nwant\n%s", told(got), got.Diagnostics, want)
	}
}

// A rule whose expressions grow with each variable is refused before they fill the
// memory, and the next one is not.
func TestGrowth(t *testing.T) {
	var b strings.Builder
	b.WriteString(labels("p", "a") + "  - name: grows\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    context:\n")
	b.WriteString("    - {name: v0, variable: {jmesPath: request.object.spec.priority}}\n")
	for i := range 40 {
		fmt.Fprintf(&b, "    - {name: v%d, variable: {jmesPath: \"add(v%d, v%d)\"}}\n", i+1, i, i)
	}
	b.WriteString("    validate: {deny: {conditions: {any: [{key: \"{{ v40 }}\", operator: GreaterThan, value: 3}]}}}\n")
	got := compile.Policies(read(t, b.String()), options(t))
	if want := "p/r0 native [] p-r0[r0]\np/grows webhook [KV217]\n"; told(got) != want {
		t.Errorf("got\n%swant\n%s", told(got), want)
	}
}

// A rule that could not be read has the code of its error.
func TestUnreadRule(t *testing.T) {
	in := read(t, labels("p", "a", "b")+strings.ReplaceAll(labels("q", "c"), "validate: {", "validate: {oops: 1, "))
	got := compile.Policies(in, options(t))
	want := "p/r0 native [] p[r0]\np/r1 native [] p[r1]\nq/r0 unsupported [KV106]\n"
	if told(got) != want || !strings.Contains(got.Rules[2].Reason, "oops") {
		t.Errorf("got\n%s%s\nwant\n%s", told(got), got.Rules[2].Reason, want)
	}
}

// Many policies give the same result each time, although all cores work on them.
func TestStableOrder(t *testing.T) {
	var text strings.Builder
	for i := range 60 {
		text.WriteString(labels(fmt.Sprintf("p%d", i%50), "a", "b?*", ">5"))
	}
	print := func() string {
		r := compile.Policies(read(t, text.String()), options(t))
		var all []any
		for _, o := range r.Objects {
			all = append(all, o.All()...)
		}
		data, err := vap.Marshal(all...)
		if err != nil {
			t.Fatal(err)
		}
		return told(r) + string(data) + fmt.Sprint(r.Diagnostics)
	}
	first := print()
	for range 3 {
		if print() != first {
			t.Fatal("the same input gave another result")
		}
	}
	if slices.Contains(strings.Split(first, "\n"), diag.CompilerFault.String()) {
		t.Error("the compiler failed")
	}
}

// Rules in CEL are checked side by side, by checkers that serve one at a time.
func TestRulesInCEL(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: expressions}\nspec:\n  rules:\n")
	for i := range 60 {
		fmt.Fprintf(&b, "  - name: r%d\n    match: {any: [{resources: {kinds: [ConfigMap, Pod]}}]}\n"+
			"    validate: {cel: {expressions: [{expression: \"object.metadata.name.size() < %d\"}]}}\n", i, i+100)
	}
	in, o := read(t, b.String()), options(t)
	for range 5 {
		for _, rule := range compile.Policies(in, o).Rules {
			if rule.Target != translate.Native {
				t.Errorf("%s: %v %s", rule.Name(), rule.Codes, rule.Reason)
			}
		}
	}
}
