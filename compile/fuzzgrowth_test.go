package compile_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/internal/cores"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// times is a text for each i below n, one after the other.
func times(n int, separator string, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, separator)
}

// denies is a rule that denies by the conditions.
func denies(context, conditions string) string {
	return "context: [" + context + "]\n    validate: {deny: {conditions: {all: [" + conditions + "]}}}"
}

// inCEL is a rule of CEL.
func inCEL(variables, expression string) string {
	return fmt.Sprintf("validate: {cel: {variables: [%s], expressions: [{expression: %q}]}}", variables, expression)
}

func keyed(key string) string {
	return "{key: " + strconv.Quote(key) + ", operator: Equals, value: never}"
}

// grown are the ways in which a part of a policy is there n times. V in it is what is there
// before it.
func grown() []func(part string, n int) string {
	again := func(part string) func(int) string { return func(int) string { return part } }
	before := func(part string, i int) string { return strings.ReplaceAll(part, "V", "v"+strconv.Itoa(i)) }
	object := "request.object.metadata.labels"
	return []func(part string, n int) string{
		func(part string, n int) string {
			return denies("", keyed("{{ "+object+" | "+times(n, " | ", again(part))+" }}"))
		},
		func(part string, n int) string { return denies("", keyed("{{ "+times(n, " || ", again(part))+" }}")) },
		func(part string, n int) string { return denies("", times(n, ", ", again(keyed("{{ "+part+" }}")))) },
		func(part string, n int) string { // a text of many variables
			return denies("", keyed(times(n, "-", again("{{ "+part+" }}"))))
		},
		func(part string, n int) string { // a chain of variables that are expressions
			return denies("{name: v0, variable: {jmesPath: "+object+"}}, "+
				times(n, ", ", func(i int) string {
					return fmt.Sprintf("{name: v%d, variable: {jmesPath: %q}}", i+1, before(part, i))
				}), keyed("{{ v"+strconv.Itoa(n)+" }}"))
		},
		func(part string, n int) string { // and of ones that are lists
			return denies("{name: v0, variable: {jmesPath: "+object+"}}, "+
				times(n, ", ", func(i int) string {
					return fmt.Sprintf("{name: v%d, variable: {value: [%q, %[2]q]}}", i+1, "{{ "+before(part, i)+" }}")
				}), keyed("{{ v"+strconv.Itoa(n)+" }}"))
		},
		func(part string, n int) string { // calls in calls, or lists in lists
			open, shut, _ := strings.Cut(part, "V")
			return denies("", keyed("{{ "+strings.Repeat(open, n)+object+strings.Repeat(shut, n)+" }}"))
		},
		func(part string, n int) string {
			return "validate: {anyPattern: [" + times(n, ", ", func(i int) string { return fmt.Sprintf("{spec: {%q: %d}}", part, i) }) + "]}"
		},
		func(part string, n int) string { // patterns in patterns
			return "validate: {pattern: {spec: " + strings.Repeat("{"+strconv.Quote(part)+": [", n) + "x" + strings.Repeat("]}", n) + "}}"
		},
		func(part string, n int) string { // loops in loops
			return "validate: {foreach: " + strings.Repeat("[{list: "+strconv.Quote(part)+", foreach: ", n) + "[{list: element, pattern: {a: b}}]" + strings.Repeat("}]", n) + "}"
		},
		func(part string, n int) string { // a chain of variables in CEL
			return inCEL("{name: v0, expression: object.metadata.name}, "+times(n, ", ", func(i int) string {
				return fmt.Sprintf("{name: v%d, expression: %q}", i+1, strings.ReplaceAll(part, "V", "variables.v"+strconv.Itoa(i)))
			}), "variables.v"+strconv.Itoa(n)+" == dyn('')")
		},
		func(part string, n int) string { // calls on calls
			return inCEL("", "dyn([object.metadata.name])"+times(n, "", again(part))+" == dyn(1)")
		},
		func(part string, n int) string { return inCEL("", times(n, " || ", again(part))+" == dyn(1)") },
		func(part string, n int) string {
			return inCEL("", "object.metadata.name.matches("+strconv.Quote(times(n, "", again(part)))+")")
		},
		func(part string, n int) string { // a regular expression of a query
			return denies("", keyed("{{ regex_match('"+times(n, "", again(part))+"', request.object.metadata.name) }}"))
		},
		func(part string, n int) string {
			return "preconditions: {any: [" + times(n, ", ", again(keyed("{{ "+part+" }}"))) + "]}\n    validate: {pattern: {spec: {a: " + strconv.Quote(part) + "}}}"
		},
	}
}

// ruleOn is a policy with a rule on a kind, or nil where it cannot be read.
func ruleOn(kind, rule string) *policy.Policy {
	f, _ := policy.Parse("p.yaml", []byte("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  background: false\n  rules:\n  - name: r\n"+
		"    match: {any: [{resources: {kinds: ["+kind+"]}}]}\n    "+rule+"\n"))
	if len(f.Policies) != 1 || f.Policies[0].Invalid || len(f.Policies[0].Rules) != 1 || f.Policies[0].Rules[0].Invalid {
		return nil
	}
	return f.Policies[0]
}

// cost is what it takes to lower a policy with a rule on a kind: steps, and allocations,
// which stand for work that nobody counts. ok is false where it cannot be read.
func cost(o compile.Options, kind, rule string) (steps, allocations int64, ok bool) {
	p := ruleOn(kind, rule)
	if p == nil {
		return 0, 0, false
	}
	to := o.Translate
	to.Budget, to.Checker = budget.New(3_000_000, nil), apiserver.NewChecker(to.Release)
	source := budget.OfSource(p)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fault := cores.Guard(func() {
		if source <= budget.PerPolicy { // else it is too large before it is compiled
			translate.Lower(p, to)
		}
	})
	runtime.ReadMemStats(&after)
	if _, large := faultOf(fault).(budget.TooLarge); fault != nil && !large {
		return 0, 0, false // another test's
	}
	return min(int64(source), budget.PerPolicy) + to.Budget.Spent(), int64(after.Mallocs - before.Mallocs), true
}

func faultOf(f *cores.Fault) any {
	if f == nil {
		return nil
	}
	return f.Value
}

// FuzzGrowth looks for a part of a policy of which twice as many cost more than four times
// as much. What is put together may double up to the bounds of a walk: the slack is what
// the dearest that is known takes to come to them, lists in lists of an unknown kind.
func FuzzGrowth(f *testing.F) {
	for way := range grown() {
		for _, part := range []string{
			"(@ || @)", "[@, @]", "[*].[@, @][]", "{a: @, b: @}", "V", "[V, V]", "V || V", "join('', [V, V])", "request.object.spec", "request.object.metadata.labels.a",
			"(=(containers))", "containers", "request.object.spec.containers[]", "to_string(V)", "(@ && @)", "@ == @", "[?@ == @]", "merge(V, V)", "not_null(V, V)",
			"V + V", "V.map(x, [x, x])", ".map(x, [x, x])", ".map(x, [x])", ".map(x, x + x)", ".replace('a', 'bb')", "[V].all(x, x.y == V)", "(a{20})", "a|b", "[a-z]*", "V6 || V",
		} {
			for kind := range uint8(3) {
				f.Add(uint8(way), kind, part)
			}
		}
	}
	o := options(f)
	f.Fuzz(func(t *testing.T, way, kind uint8, part string) {
		if len(part) > 60 {
			t.Skip("more of a part is not another part")
		}
		ways, kinds := grown(), []string{"ConfigMap", "Pod", "acme.io/v1/Widget"}
		write, on := ways[int(way)%len(ways)], kinds[int(kind)%len(kinds)]
		const few, slack, slackAllocations = 8, 550_000, 1_600_000
		steps, allocations, ok := cost(o, on, write(part, few))
		twice, twiceAllocations, read := cost(o, on, write(part, 2*few))
		if !ok || !read {
			return
		}
		if twice > 4*steps+slack {
			t.Errorf("way %d, %s, %q: %d of it take %d steps, and %d take %d", int(way)%len(ways), on, part, few, steps, 2*few, twice)
		}
		if twiceAllocations > 4*allocations+slackAllocations {
			t.Errorf("way %d, %s, %q: %d of it take %d allocations, and %d take %d", int(way)%len(ways), on, part, few, allocations, 2*few, twiceAllocations)
		}
	})
}
