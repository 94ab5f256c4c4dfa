package pack_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/vap"
)

// choices are the ways in which rules share objects.
func choices() map[string]pack.Options {
	return map[string]pack.Options{
		"rule": {Apart: true}, "policy": {}, "match": {ByKind: true}, "unguarded": {ByKind: true, Unguarded: true},
	}
}

// A source is a policy whose rules become units.
type source struct {
	*policy.Policy
	units []pack.Unit
}

func newSource(name string, action policy.Action) *source {
	return &source{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: name, FailurePolicy: policy.Fail, Action: action}}
}

// with adds a rule: what it says of a resource, on some operations.
func (s *source) with(name, resource string, holds cel.Bool, ops ...native.Operation) *source {
	rule := &policy.Rule{Name: name, Origin: name, Validate: &policy.Validate{}}
	s.Rules = append(s.Rules, rule)
	s.units = append(s.units, pack.Unit{
		Policy: s.Policy, Rule: rule, Operations: ops,
		Target: native.Target{Version: "v1", Resource: resource, Scope: native.Namespaced},
		Match:  cel.True(), Pre: partial.Sure(cel.True()), Holds: partial.Sure(holds), Exempt: cel.False(), Message: native.Message{Text: name},
	})
	return s
}

// drafts are the objects of policies, which share them where they are packed by kind.
func drafts(o pack.Options, sources ...*source) []pack.Packed {
	if o.ByKind {
		return pack.Drafts(units(sources...), o)
	}
	var out []pack.Packed
	for _, s := range sources {
		out = append(out, pack.Drafts(s.units, o)...)
	}
	return out
}

// TestAskBoth: where the excuse of a rule is its check, of the old object, the guard asks both.
func TestAskBoth(t *testing.T) {
	spec := func(of string) cel.Value { return cel.Ident(of).Field("spec") }
	old := spec("oldObject").Field("a").Eq(cel.Int(0))
	for _, c := range []struct {
		name   string
		before cel.Bool
		want   bool
	}{
		{"the same question", old, true},
		{"another question", spec("oldObject").Field("b").Eq(cel.Int(0)), false},
		{"the same of less", cel.And(spec("oldObject").Field("b").Eq(cel.Int(1)), old), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSource("p", policy.Enforce).with("r", "widgets", spec("object").Field("a").Ne(cel.Int(0)), native.Create, native.Update)
			s.units[0].Before, s.units[0].Exempt = c.before, c.before
			d := drafts(pack.Options{}, s)[0].Draft
			if d.Guard.IsTrue() {
				t.Fatal("there is no guard")
			}
			if both := !d.Before.IsZero(); both != c.want || d.Validations[0].Left.IsFalse() != c.want {
				t.Errorf("the guard asks both objects: %t, and %q is left to the validation", both, d.Validations[0].Left)
			}
		})
	}
}

// TestAskOnceWhatNoUpdateChanges: where the match of a rule holds of a request, it holds of the
// old object but for what the match reads of the object itself.
func TestAskOnceWhatNoUpdateChanges(t *testing.T) {
	field := func(of, name string) cel.Value { return cel.Ident(of).Field("spec").Field(name) }
	inTeam := cel.Ident("request").Field("namespace").Eq(cel.String("team"))
	old := field("oldObject", "a").Eq(cel.Int(0))
	for _, c := range []struct {
		match, before cel.Bool
		want          string
	}{
		{inTeam, cel.And(inTeam, old), "true"},
		{cel.And(inTeam, field("object", "b").Eq(cel.Int(1))), cel.And(inTeam, field("oldObject", "b").Eq(cel.Int(1)), old), "object.spec.b == 1"},
	} {
		s := newSource("p", policy.Enforce).with("r", "widgets", field("object", "a").Ne(cel.Int(0)), native.Create, native.Update)
		s.units[0].Match, s.units[0].Before, s.units[0].Exempt = c.match, c.before, c.before
		d := drafts(pack.Options{}, s)[0].Draft
		if got := d.Before.String(); got != c.want {
			t.Errorf("match %s: asks %s of each object, want %s", c.match, got, c.want)
		}
		if got := d.Validations[0].Expr.String(); strings.Contains(got, "request.namespace") {
			t.Errorf("match %s: asks again in %s", c.match, got)
		}
	}
}

func units(sources ...*source) []pack.Unit {
	var out []pack.Unit
	for _, s := range sources {
		out = append(out, s.units...)
	}
	return out
}

// says is a condition with words of its own.
func says(word string) cel.Bool {
	return cel.Ident("object").Field("metadata").Field("name").Ne(cel.String(word))
}

// members are the rules of each object, by its name, as in policy/rule.
func members(packed []pack.Packed) map[string][]string {
	out := map[string][]string{}
	for _, p := range packed {
		for _, m := range p.Draft.Members {
			out[p.Draft.Base] = append(out[p.Draft.Base], m.Policy+"/"+m.Rule)
		}
	}
	return out
}

// anything is a list of policies that differ in what packs are made by.
func anything(r *rand.Rand, n int) []*source {
	var out []*source
	for i := range n {
		s := newSource(fmt.Sprintf("p%d", i), []policy.Action{policy.Audit, policy.Enforce}[r.IntN(2)])
		s.EmitWarning = r.IntN(4) == 0
		if r.IntN(5) == 0 {
			s.FailurePolicy = policy.Ignore
		}
		if r.IntN(6) == 0 {
			s.Kind, s.Namespace = "Policy", "app"
		}
		for j := range 1 + r.IntN(3) {
			ops := [][]native.Operation{{native.Create, native.Update}, {native.Create}, {native.Update}, {native.Create, native.Update, native.Delete}, {native.Delete}}[r.IntN(5)]
			s.with(fmt.Sprintf("r%d", j), []string{"pods", "configmaps"}[r.IntN(2)], says(fmt.Sprint(i, j)), ops...)
		}
		out = append(out, s)
	}
	return out
}

// However rules share objects, each is asked on each of its operations exactly once, by
// an object of its action and failure policy, and no two objects have one name.
func TestNoRuleIsLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		sources := anything(rand.New(rand.NewPCG(seed, 7)), 12)
		for name, o := range choices() {
			asked, names := map[string]int{}, map[string]bool{}
			for _, p := range drafts(o, sources...) {
				if names[p.Draft.Base] {
					t.Errorf("%d, %s: two objects are called %s", seed, name, p.Draft.Base)
				}
				names[p.Draft.Base] = true
				for i, m := range p.Draft.Members {
					for _, op := range operationsOf(p.Draft, i) {
						asked[m.Policy+"/"+m.Rule+" "+op]++
					}
					if of := p.Rules[i]; of.Name != m.Rule {
						t.Errorf("%d, %s: member %d of %s is %s, and made from %s", seed, name, i, p.Draft.Base, m.Rule, of.Name)
					}
				}
			}
			for _, u := range units(sources...) {
				for _, op := range u.Operations {
					what := native.MemberName(u.Policy) + "/" + u.Rule.Name + " " + string(op)
					if asked[what] != 1 {
						t.Errorf("%d, %s: %s is asked %d times", seed, name, what, asked[what])
					}
					delete(asked, what)
				}
			}
			for what := range asked {
				t.Errorf("%d, %s: %s is asked, and was not to be", seed, name, what)
			}
		}
	}
}

// operationsOf are those on which a member is asked: those of the object, unless it
// asks for one itself.
func operationsOf(d *vap.Draft, member int) []string {
	var out []string
	for _, r := range d.Constraints.Rules {
		for _, op := range r.Operations {
			mine := func(v vap.Validation) bool {
				return v.Member == member && (!slices.Contains(v.Expr.Uses("request"), "operation") || strings.Contains(v.Expr.String(), op))
			}
			if slices.ContainsFunc(d.Validations, mine) && !slices.Contains(out, op) {
				out = append(out, op)
			}
		}
	}
	return out
}

// A policy more changes the name of no object, and takes no rule out of one.
func TestNamesStay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 8))
		sources := anything(r, 15)
		more := newSource("one-more", policy.Enforce).with("r", "pods", says("more"), native.Create, native.Update)
		for name, o := range choices() {
			before := members(drafts(o, sources...))
			place := r.IntN(len(sources) + 1)
			after := members(drafts(o, slices.Insert(slices.Clone(sources), place, more)...))
			for object, rules := range before {
				rest := slices.DeleteFunc(after[object], func(m string) bool { return strings.HasPrefix(m, "one-more/") })
				if !slices.Equal(rest, rules) {
					t.Errorf("%d, %s: %s held %v, and holds %v", seed, name, object, rules, rest)
				}
			}
		}
	}
}

// The action of a rule is that of its binding; a namespaced policy counts in its
// namespace alone.
func TestBindings(t *testing.T) {
	t.Parallel()
	enforcing, warning, audit := newSource("enforcing", policy.Enforce), newSource("warning", policy.Audit), newSource("audit", policy.Audit)
	warning.EmitWarning = true
	own := newSource("own", policy.Enforce)
	own.Kind, own.Namespace = "Policy", "app"
	sources := []*source{enforcing, warning, audit, own}
	for _, s := range sources {
		s.with("r", "pods", says(s.Name), native.Create)
	}
	for name, o := range choices() {
		got := map[string]string{}
		for _, p := range drafts(o, sources...) {
			b := p.Draft.Bindings
			if len(b) != 1 || len(p.Draft.Members) != 1 {
				t.Fatalf("%s: %s has %d bindings and %d members", name, p.Draft.Base, len(b), len(p.Draft.Members))
			}
			got[p.Draft.Members[0].Policy] = fmt.Sprint(b[0].Actions, b[0].NamespaceSelector.Labels)
		}
		want := map[string]string{
			"enforcing": "[Deny] []", "warning": "[Audit Warn] []", "audit": "[Audit] []", "app/own": "[Deny] [{" + pack.NameLabel + " app}]",
		}
		for policy, binding := range want {
			if got[policy] != binding {
				t.Errorf("%s: %s is bound by %s, want %s", name, policy, got[policy], binding)
			}
		}
	}
}

// What would cost too much together is split, and what costs too much alone is alone.
func TestBudget(t *testing.T) {
	t.Parallel()
	var sources []*source
	for i := range 250 {
		sources = append(sources, newSource(fmt.Sprintf("p%d", i), policy.Audit).with("r", "configmaps", says(fmt.Sprint(i)), native.Create))
	}
	data := cel.Ident("object").Field("data")
	scope := &cel.Scope{}
	dear := scope.All(data, "a", func(a cel.Value) cel.Bool {
		return scope.All(data, "b", func(b cel.Value) cel.Bool {
			return scope.All(data, "c", func(c cel.Value) cel.Bool { return cel.Not(a.Plus(b).Eq(c)) })
		})
	})
	sources = append(sources, newSource("dear", policy.Audit).with("r", "configmaps", dear, native.Create))
	held := 0
	packed := drafts(pack.Options{ByKind: true}, sources...)
	for _, p := range packed {
		held += len(p.Draft.Members)
		if len(p.Draft.Members) > 100 {
			t.Errorf("%s has %d members", p.Draft.Base, len(p.Draft.Members))
		}
		if hasDear := slices.ContainsFunc(p.Draft.Members, func(m vap.Member) bool { return m.Policy == "dear" }); hasDear && len(p.Draft.Members) > 1 {
			t.Errorf("%s has the dear rule and others", p.Draft.Base)
		}
	}
	if held != len(sources) || len(packed) < 4 {
		t.Errorf("%d objects hold %d of %d rules", len(packed), held, len(sources))
	}
}

// What it takes to pack a rule does not depend on how many there are. Bytes stand for
// work: they do not depend on what else the machine does.
func TestLinearGrowth(t *testing.T) {
	for name, o := range choices() {
		work := func(n int) float64 {
			s := newSource("p", policy.Audit)
			for i := range n {
				s.with(fmt.Sprintf("r%d", i), "pods", says(fmt.Sprintf("%0200d", i)), native.Create)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			pack.Drafts(s.units, o)
			runtime.ReadMemStats(&after)
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		if few, many := work(250), work(2000); many > 12*few {
			t.Errorf("%s: 250 rules take %.0f bytes, and eight times as many %.1f times that", name, few, many/few)
		}
	}
}

// Objects that are named after a kind say in each message whose rule it is, also where
// they hold a single one: their names do not tell.
func TestMessagesNameThePolicy(t *testing.T) {
	for seed := range uint64(50) {
		sources := anything(rand.New(rand.NewPCG(seed, 3)), 1+int(seed)%5)
		for _, way := range []string{"match", "unguarded"} {
			for _, p := range drafts(choices()[way], sources...) {
				for _, v := range p.Draft.Validations {
					m := p.Draft.Members[v.Member]
					if want := "[" + m.Policy + "/" + m.Rule + "] " + m.Rule; v.Message != want {
						t.Errorf("%s, seed %d: %s says %q, want %q", way, seed, p.Draft.Base, v.Message, want)
					}
				}
			}
		}
	}
}
