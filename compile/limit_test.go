package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// A policy that takes too many steps is too large, and no other is.
func TestTooManySteps(t *testing.T) {
	in := read(t, labels("p", "a")+labels("q", "b", "c")+labels("r", "d"))
	o := options(t)
	o.Steps = func(p *policy.Policy) int64 {
		if p.Name == "q" {
			return 10
		}
		return 10_000
	}
	if got, want := told(compile.Policies(in, o)), "p/r0 native [] p[r0]\nq/r0 webhook [KV217]\nq/r1 webhook [KV217]\nr/r0 native [] r[r0]\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A rule that doubles what it reads is refused as it is, before it takes the steps of the
// others: of many parts, of large texts, and of many fields.
func TestOneRuleIsTooLarge(t *testing.T) {
	for name, large := range map[string]struct{ kind, rule, reason string }{
		"parts": {"ConfigMap", denies("", keyed("{{ request.object.data.x"+strings.Repeat(" | [@, @]", 13)+" }}")), "more than 5000 values"},
		"nodes": {"ConfigMap", denies("{name: v0, variable: {jmesPath: request.object.data.x}}, "+times(10, ", ", func(i int) string {
			return fmt.Sprintf("{name: v%d, variable: {value: '{{ v%d }}{{ v%[2]d }}'}}", i+1, i)
		}), keyed("{{ v10 }}")), ""},
		"fields": {"Thing", "validate: {pattern: {spec: {" + times(3000, ", ", func(i int) string { return fmt.Sprintf("=(f%d): x", i) }) + "}}}",
			"the rule would become larger than any"},
	} {
		in := read(t, "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  background: false\n  rules:\n"+
			"  - name: small\n    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n    validate: {pattern: {data: {x: a}}}\n"+
			"  - name: large\n    match: {any: [{resources: {kinds: ["+large.kind+"]}}]}\n    "+large.rule+"\n")
		result := compile.Policies(in, options(t))
		if reason := result.Rules[1].Reason; !strings.Contains(reason, large.reason) {
			t.Errorf("%s: %s", name, reason)
		}
		if got, want := told(result), "p/small native [] p-small[small]\np/large webhook [KV217]\n"; got != want {
			t.Errorf("%s: got\n%swant\n%s", name, got, want)
		}
	}
}

// What a policy may cost is enough for one with many rules.
func TestManyRulesAreNotTooLarge(t *testing.T) {
	values := make([]string, 500)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	o := options(t)
	o.Translate.Pack = translate.PackMatch
	for _, r := range compile.Policies(read(t, labels("p", values...)), o).Rules {
		if r.Target != translate.Native {
			t.Fatalf("%s: %v", r.Name(), r.Codes)
		}
	}
}

// A compilation whose result nobody wants ends, in the middle of a policy too.
func TestStopped(t *testing.T) {
	values := make([]string, 200)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	for after := range int64(6) {
		o := options(t)
		var asked atomic.Int64
		o.Stopped = func() bool { return asked.Add(1) > after }
		got := compile.Policies(read(t, labels("p", values...)), o)
		if !got.Stopped || len(got.Rules) > 0 || asked.Load() < after {
			t.Errorf("after %d questions: stopped %v, %d rules", after, got.Stopped, len(got.Rules))
		}
	}
}

// It ends between policies too, each of which takes fewer steps than there are between two
// questions.
func TestStoppedBetweenPolicies(t *testing.T) {
	o := options(t)
	o.Stopped = func() bool { return true }
	if got := compile.Policies(read(t, labels("p", "a")+labels("q", "b")), o); !got.Stopped || len(got.Rules) > 0 {
		t.Errorf("stopped %v, %d rules", got.Stopped, len(got.Rules))
	}
}

// A namespace has as many native rules as it may have, and no object beyond them; what
// another namespace has, or a ClusterPolicy, does not count.
func TestNamespaceLimit(t *testing.T) {
	namespaced := func(namespace, name string, values ...string) string {
		return strings.NewReplacer("kind: ClusterPolicy", "kind: Policy", "{name: "+name+"}", "{name: "+name+", namespace: "+namespace+"}").Replace(labels(name, values...))
	}
	rules := namespaced("a", "p", "1", "2") + namespaced("a", "q", "3", "4") + namespaced("b", "r", "5") + labels("s", "6", "7", "8", "9")
	kinds := strings.Replace(namespaced("a", "p", "1", "2"), "kinds: [ConfigMap]", "kinds: [Secret, Service, Endpoints, ServiceAccount]", 1)
	for name, tt := range map[string]struct{ source, want string }{
		"rules":   {rules, "a/p/r0 a/p/r1 a/q/r0 b/r/r0 s/r0 s/r1 s/r2 s/r3"},
		"objects": {kinds, ""}, // one rule for four kinds, and the next makes no room
		"few":     {namespaced("a", "p", "1", "2", "3"), "a/p/r0 a/p/r1 a/p/r2"},
	} {
		o := options(t)
		o.NamespaceLimit, o.Translate.Pack = 3, translate.PackMatch
		var got []string
		for _, r := range compile.Policies(read(t, tt.source), o).Rules {
			if r.Target == translate.Native {
				got = append(got, r.PolicyName()+"/"+r.Name())
			} else if !slices.Equal(r.Codes, []diag.Code{diag.NamespaceLimit}) || !strings.Contains(r.Reason, "namespace a") {
				t.Errorf("%s: %s has %v: %s", name, r.Name(), r.Codes, r.Reason)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: native are %v, want %s", name, got, tt.want)
		}
	}
}

// The policies of one namespace take no more together than it has; those of others, and
// ClusterPolicies, have what they had.
func TestSharedSteps(t *testing.T) {
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "---\napiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: p%d, namespace: crowded}\nspec: {rules: []}\n", i)
	}
	text.WriteString("---\napiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: p, namespace: other}\nspec: {rules: []}\n" + labels("q", "a"))
	in := read(t, text.String())
	steps := compile.SharedSteps(in.Policies)
	var crowded int64
	for _, p := range in.Policies[:300] {
		crowded += steps(p)
	}
	alone := compile.SharedSteps(in.Policies[300:])
	for _, p := range in.Policies[300:] {
		if steps(p) != alone(p) || steps(p) < 100_000 {
			t.Errorf("%s may take %d steps, and %d without the others", p.Name, steps(p), alone(p))
		}
	}
	if most := int64(2_000_000); crowded > most {
		t.Errorf("the policies of a namespace may take %d steps, and %d is the bound", crowded, most)
	}
}
