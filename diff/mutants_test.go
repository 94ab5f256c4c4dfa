package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A mutant is a policy with one change.
type mutant struct {
	fixture, what string
	old, new      []byte
	options       []byte
	context       []byte
	cases         []fixtures.Case
}

// seen is what the interpreter says of the cases of the fixture.
func (m mutant) seen(t testing.TB, side Side, schemas *schema.Set) string {
	t.Helper()
	var b strings.Builder
	objects := []map[string]any{}
	for _, u := range given(t, m.context) {
		objects = append(objects, u.Object)
	}
	in := interp.New(side.Policies, side.Exceptions, judge.World(objects, schemas), interp.Limits{})
	for _, c := range m.cases {
		text, err := c.Request()
		if err != nil {
			t.Fatal(err)
		}
		var data map[string]any
		if err := json.Unmarshal(text, &data); err != nil {
			t.Fatal(err)
		}
		r, err := judge.NewRequest(data)
		if err != nil {
			t.Fatal(err)
		}
		r.NamespaceLabels, r.Roles, r.ClusterRoles = c.NamespaceLabels, c.Roles, c.ClusterRoles
		for _, result := range in.Judge(context.Background(), r.Interp()) {
			violated := result.Status == interp.Fail || result.Status == interp.Error
			fmt.Fprintf(&b, "%s %v\n", result.Rule, violated)
			if result.Status == interp.Fail {
				fmt.Fprintln(&b, newWriter().ofKyverno(result.Message), side.Policies[0].Action)
			}
		}
	}
	return b.String()
}

// A mutator goes through documents and changes what it finds at a place that counts.
type mutator struct {
	at    int // the place to change; -1 for none
	seen  int
	what  string
	below []string // the keys on the way
}

// change tells that the place at hand is the one to change.
func (m *mutator) change(format string, args ...any) bool {
	m.seen++
	if m.seen-1 != m.at {
		return false
	}
	m.what = strings.Join(m.below, ".") + ": " + fmt.Sprintf(format, args...)
	return true
}

func (m *mutator) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			m.below = append(m.below, key)
			v[key] = m.value(v[key])
			m.below = m.below[:len(m.below)-1]
		}
	case []any:
		if key := m.key(); (key == "operations" || key == "namespaces") && len(v) > 1 && m.change("without %v", v[0]) {
			return v[1:]
		}
		for i := range v {
			before := m.below
			if of, ok := v[i].(map[string]any); ok && m.key() == "rules" {
				m.below = append(slices.Clip(m.below), fmt.Sprint("rule ", of["name"]))
			}
			v[i] = m.value(v[i])
			m.below = before
		}
	case string:
		return m.text(v)
	case bool:
		if m.within("pattern", "anyPattern") && m.change("%v becomes %v", v, !v) {
			return !v
		}
	case float64:
		if m.within("pattern", "anyPattern", "conditions") && m.change("%v becomes %v", v, v+1) {
			return v + 1
		}
	}
	return v
}

func (m *mutator) key() string { return m.below[len(m.below)-1] }

func (m *mutator) within(keys ...string) bool {
	return slices.ContainsFunc(m.below, func(s string) bool { return slices.Contains(keys, s) })
}

var word = regexp.MustCompile(`[A-Za-z0-9]+$`)

// text changes a text by what it is for.
func (m *mutator) text(s string) any {
	swaps := map[string][][2]string{
		"operator":                {{"NotEquals", "Equals"}, {"Equals", "NotEquals"}, {"AnyIn", "AnyNotIn"}, {"AllIn", "AllNotIn"}, {"AnyNotIn", "AnyIn"}, {"AllNotIn", "AllIn"}, {"GreaterThan", "LessThan"}, {"LessThan", "GreaterThan"}},
		"validationFailureAction": {{"Enforce", "Audit"}, {"Audit", "Enforce"}},
		"failureAction":           {{"Enforce", "Audit"}, {"Audit", "Enforce"}},
		"expression":              {{" == ", " != "}, {" != ", " == "}, {" < ", " <= "}, {" > ", " >= "}, {" <= ", " < "}, {" >= ", " > "}, {" && ", " || "}, {" || ", " && "}, {".all(", ".exists("}, {".exists(", ".all("}, {"startsWith", "endsWith"}},
	}
	for _, swap := range swaps[m.key()] {
		if (m.key() == "expression" && strings.Contains(s, swap[0]) || s == swap[0]) && m.change("%s becomes %s in %s", swap[0], swap[1], s) {
			return strings.Replace(s, swap[0], swap[1], 1)
		}
	}
	switch {
	case m.key() == "message" && !strings.Contains(s, "{{"):
		if m.change("other words") {
			return "Not so: " + s
		}
	case m.key() == "namespaces" || (m.within("pattern", "anyPattern") || m.key() == "value") && !strings.Contains(s, "{{"):
		if word.MatchString(s) && m.change("%s becomes %s", s, s+"7") {
			return s + "7"
		}
	}
	return s
}

// mutants make all of a fixture.
func mutants(t testing.TB, f fixtures.Fixture) (out []func() mutant) {
	t.Helper()
	documents := func() (out []any) {
		for _, text := range bytes.Split(f.Policy, []byte("\n---")) {
			var v any
			if err := yaml.Unmarshal(text, &v); err != nil {
				return nil
			}
			out = append(out, v)
		}
		return out
	}
	write := func(list []any) []byte {
		var b bytes.Buffer
		for _, v := range list {
			text, err := yaml.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString("---\n")
			b.Write(text)
		}
		return b.Bytes()
	}
	mutate := func(at int) (*mutator, []byte) {
		m, list := &mutator{at: at}, documents()
		for i := range list {
			if of, ok := list[i].(map[string]any); ok && of["kind"] != "PolicyException" {
				m.below = []string{"spec"}
				of["spec"] = m.value(of["spec"])
			}
		}
		return m, write(list)
	}
	cases, err := fixtures.ParseCases(f.Cases)
	if err != nil {
		t.Fatal(err)
	}
	whole, old := mutate(-1)
	for at := range whole.seen {
		out = append(out, func() mutant {
			m, text := mutate(at)
			return mutant{f.Name, m.what, old, text, f.Options, f.Context, cases}
		})
	}
	return out
}

// judged tells of a policy that has rules to judge, and none that cannot be read.
func judged(source []byte) (Side, bool) {
	file, found := policy.Parse("policy.yaml", source)
	side := Side{Policies: file.Policies, Exceptions: file.Exceptions}
	for _, g := range side.groups() {
		if len(g.rules) > 0 && !found.HasErrors() {
			return side, true
		}
	}
	return side, false
}

// A change that somebody made by mistake is found: those that a case of the fixture sees, so that
// there is something to find.
func TestMutants(t *testing.T) {
	var all []func() mutant
	for _, f := range fixtures.All() {
		if f.Cases != nil {
			all = append(all, mutants(t, f)...)
		}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	want, set := 12, schemas(t)
	if *long {
		want = 300
	}
	tried, found := 0, 0
	var slowest time.Duration
	for _, made := range all {
		if tried == want {
			break
		}
		m := made()
		old, ok := judged(m.old)
		new, fine := judged(m.new)
		if !ok || !fine {
			continue
		}
		types := withCRDs(t, set, m.options)
		if m.seen(t, old, types) == m.seen(t, new, types) {
			continue
		}
		tried++
		begin := time.Now()
		got, err := Compare(context.Background(), old, new, Options{Schemas: types, Seed: 1, Time: 5 * time.Second, First: true, Params: given(t, m.context)})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(got.Comparisons, func(c Comparison) bool { return !c.Same() }) {
			found++
			slowest = max(slowest, time.Since(begin))
			continue
		}
		t.Logf("not found: %s: %s", m.fixture, m.what)
	}
	t.Logf("%d of %d found, of %d mutants of the fixtures; the slowest in %v", found, tried, len(all), slowest)
	if missed := tried - found; missed > max(1, tried*3/100) { // one may be of a field that no definition has
		t.Errorf("%d of %d mutants found", found, tried)
	}
}
