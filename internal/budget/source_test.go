package budget_test

import (
	"fmt"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"

	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/policy"
)

// stepsOf are the steps of a ValidatingPolicy with variables v0, v1 and so on.
func stepsOf(t *testing.T, variables []string, validation string) int {
	t.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  matchConstraints:\n    resourceRules:\n" +
		"    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}\n  variables:\n")
	for i, v := range variables {
		fmt.Fprintf(&b, "  - {name: v%d, expression: %q}\n", i, v)
	}
	fmt.Fprintf(&b, "  validations:\n  - expression: %q\n", validation)
	f, found := policy.Parse("p.yaml", []byte(b.String()))
	if len(f.Policies) != 1 || f.Policies[0].Invalid {
		t.Fatalf("%v", found)
	}
	return budget.OfSource(f.Policies[0])
}

func repeated(n int, first, next string) []string {
	out := []string{first}
	for i := 1; i < n; i++ {
		out = append(out, strings.ReplaceAll(next, "V", fmt.Sprintf("variables.v%d", i-1)))
	}
	return out
}

func alternatives(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%da{100}", i))
	}
	return strings.Join(out, "|")
}

// What grows without being long is too large, however it is written.
func TestSourceThatIsTooLarge(t *testing.T) {
	chain := func(n int, first, next string) string { return first + strings.Repeat(next, n) }
	for name, of := range map[string]struct {
		variables  []string
		validation string
	}{
		"a sum of variables":        {repeated(30, "object.metadata.name", "V + V"), "variables.v29 == ''"},
		"of lists":                  {repeated(200, "[1]", "V.map(x, [x])"), "variables.v199 == []"},
		"lists of lists":            {nil, chain(200, "[1]", ".map(x, [x, x])") + ".size() > 0"},
		"lists in lists":            {nil, chain(120, "[1]", ".map(x, [x])") + ".size() > 0"},
		"what an element is":        {nil, chain(30, "['a']", ".map(x, x + x)") + ".size() > 0"},
		"names":                     {nil, chain(30, "cel.bind(a, object.metadata.name, ", "cel.bind(a, a + a, ") + "a.size() > 0" + strings.Repeat(")", 31)},
		"two-variable macros":       {nil, chain(60, "[1]", ".transformList(i, x, [[x], [x]])") + ".size() > 0"},
		"what replaces nothing":     {nil, chain(6, "object.metadata.name", ".replace('', 'aaaaaaaaaa')") + " == ''"},
		"what is replaced by more":  {nil, chain(6, "object.metadata.name", ".replace('a', 'aaaaaaaaaa')") + " == ''"},
		"a regular expression":      {nil, "object.metadata.name.matches('" + strings.Repeat("(a{1000})", 100) + "')"},
		"repetitions in each other": {nil, "object.metadata.name.matches('" + strings.Repeat("((a{10}){10}b){10}", 60) + "')"},
		"an alternative of many":    {nil, "object.metadata.name.find('" + alternatives(900) + "') == ''"},
		"classes":                   {nil, `object.metadata.name.matches(r'` + strings.Repeat(`\pL`, 1000) + `')`},
	} {
		if steps := stepsOf(t, of.variables, of.validation); steps <= budget.PerPolicy {
			t.Errorf("%s: %d steps", name, steps)
		}
	}
}

// What people write is not, long as it may be.
func TestSourceThatIsNot(t *testing.T) {
	for name, of := range map[string]struct {
		variables  []string
		validation string
	}{
		"a long chain":        {repeated(100, "object.metadata.name", "V + 'a'"), "variables.v99 == ''"},
		"many alternatives":   {nil, strings.Repeat("object.metadata.name in ['a', 'b'] || ", 300) + "false"},
		"many words":          {nil, "object.metadata.name.matches('^(" + strings.ReplaceAll(alternatives(900), "{100}", "-word") + ")$')"},
		"loops in loops":      {nil, "object.spec.containers.all(c, c.volumeMounts.all(m, object.spec.volumes.exists(v, v.name == m.name && v.x.all(x, x.y == c.name))))"},
		"replaced many times": {nil, "object.metadata.name" + strings.Repeat(".replace('.', '-')", 60) + " == ''"},
		"quoted":              {nil, "object.metadata.name" + strings.Repeat(".replace('.', '_.')", 8) + " == ''"},
	} {
		if steps := stepsOf(t, of.variables, of.validation); steps > budget.PerPolicy/3 {
			t.Errorf("%s: %d steps", name, steps)
		}
	}
}

// A text of a type that is not known ends where one of a known type would, before it is
// made; what makes no text is as it was.
func TestTexts(t *testing.T) {
	env, err := celgo.NewEnv(ext.Strings(), celgo.Variable("x", celgo.DynType), celgo.Variable("text", celgo.StringType))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 6_000_000)
	for expression, want := range map[string]string{
		"x + 'a' == text + 'a'":                             "true",
		"x + x == ''":                                       "error",
		"text + text == ''":                                 "error",
		"x.replace('', 'aa') == ''":                         "error",
		"x.replace('a', 'bb') == ''":                        "error",
		"x.replace('a', 'b').size()":                        "6000000",
		"'aba'.replace('a', 'cc', 1)":                       "ccba",
		"[x, x].join() == ''":                               "error",
		"['a', 'b'].join(', ')":                             "a, b",
		"[x, '', '', ''].map(y, '').join(x) == ''":          "error",
		"'%s%s'.format([x, [x]]) == ''":                     "error",
		"'%s-%d'.format(['a', 2])":                          "a-2",
		"dyn(1) + dyn(2)":                                   "3",
		"size([x] + [x])":                                   "2",
		"dyn('a') + dyn(1)":                                 "error",
		"b'a' + b'b' == b'ab'":                              "true",
		"duration('1s') + duration('1s') == duration('2s')": "true",
	} {
		tree, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(tree, budget.Texts())
		if err != nil {
			t.Fatal(err)
		}
		got := "error"
		if out, _, err := program.Eval(map[string]any{"x": long, "text": long}); err == nil {
			got = fmt.Sprint(out.Value())
		}
		if got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}
