package compile_test

import (
	"fmt"
	"testing"

	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// Each part of the walk spends what it does: of each of these rules the part that is named
// takes most steps. Without them, a rule of which it does much would have no bound. A part
// that learns to do less spends less: then a number here goes down with it.
func TestSpent(t *testing.T) {
	o := options(t)
	each := func(n int, format string) string {
		return times(n, ", ", func(i int) string { return fmt.Sprintf(format, i) })
	}
	twice := func(n int, part string) string { // a chain of variables, each of which is a list
		return denies("{name: v0, variable: {jmesPath: request.object.metadata.labels}}, "+
			each(n, "{name: 'w%[1]d', variable: {value: ['{{ "+part+" }}', '{{ "+part+" }}']}}"), keyed(fmt.Sprintf("{{ w%d }}", n-1)))
	}
	for _, test := range []struct {
		part, kind, rule string
		atLeast          int64
	}{
		{"a step for each pattern", "Pod", "validate: {pattern: {spec: {containers: [{" + each(100, "f%d: x") + "}]}}}", 2000},
		{"the conditions of a pattern", "Thing", "validate: {pattern: {spec: {" + each(200, "=(f%d): x") + "}}}", 9000},
		{"the values of a condition", "Thing", denies("", keyed("{{ request.object.metadata.labels | "+times(20, " | ", func(int) string { return "[@, @]" })+" }}")), 36_000},
		{"what must be there to be read", "Pod", denies("", each(100, "{key: a%d, operator: Equals, value: never}")), 3000},
		{"the fields that a query names", "Pod", denies("", keyed(times(20, "-", func(int) string { return "{{ request.object.spec.containers[] }}" }))), 700},
		{"the fields that a pattern names", "ConfigMap", "validate: {pattern: {spec: {" + each(200, "f%d: x") + "}}}", 200},
		{"the variables that an expression may mean", "Pod", twice(20, "spec"), 1700},
		{"a regular expression", "Thing", denies("", keyed("{{ regex_match('"+times(20, "", func(int) string { return "(a{20})" })+"', request.object.metadata.name) }}")), 9500},
	} {
		to := o.Translate
		to.Budget, to.Checker = budget.New(budget.PerPolicy, nil), apiserver.NewChecker(to.Release)
		p := ruleOn(test.kind, test.rule)
		if p == nil {
			t.Fatalf("%s: not a rule", test.part)
		}
		translate.Lower(p, to)
		if got := to.Budget.Spent(); got < test.atLeast {
			t.Errorf("%s: %d steps, want at least %d", test.part, got, test.atLeast)
		}
	}
}
