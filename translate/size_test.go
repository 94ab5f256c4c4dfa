package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate"
)

// Some constructs, written several times in one rule, would multiply. Each must
// become expressions that grow with the rule, or be refused with the code for it.
func TestSizeGrowsWithTheRule(t *testing.T) {
	t.Parallel()
	const head = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: large}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
`
	repeat := func(n int, sep string, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, sep)
	}
	deny := func(context, key string) string {
		return head + context + `      validate:
        deny: {conditions: {any: [{key: "` + key + `", operator: Equals, value: never}]}}
`
	}
	chain := func(n int) string { // each variable is made of the one before it, twice
		return "      context:\n" +
			"        - {name: v0, variable: {jmesPath: \"request.object.data.v || 'none'\"}}\n" +
			repeat(n, "", func(i int) string {
				return fmt.Sprintf("        - {name: v%d, variable: {jmesPath: \"v%d || request.object.data.x%d || v%d\"}}\n", i+1, i, i, i)
			})
	}
	piped := func(n int, step string) string { // each step has what comes before it twice
		return "{{ request.object.data.x" + strings.Repeat(" | "+step, n) + " }}"
	}
	pairs := func(of, pair string) string { // each variable has the one before it twice
		return "      context:\n        - {name: v0, variable: {" + of + "}}\n" +
			repeat(40, "", func(i int) string {
				return fmt.Sprintf("        - {name: v%d, variable: {%s}}\n", i+1, strings.ReplaceAll(pair, "V", fmt.Sprint("v", i)))
			})
	}
	cases := []struct {
		name, source string
		native       bool
	}{
		{"one of two that are the same, many times", deny("", piped(40, "(@ || @)")), true},
		{"pairs of pairs", deny("", piped(32, "[@,@]")), false},
		{"pairs of the elements of pairs", deny("", piped(40, "[*].[@,@][]")), true},
		{"pairs of the elements of containers", strings.NewReplacer("ConfigMap", "Pod", "data.x", "spec.containers").Replace(deny("", piped(40, "[*].[@,@][]"))), true},
		{"variables that are pairs of variables", deny(pairs("jmesPath: request.object.data.x", `jmesPath: "[V,V]"`), "{{ v40 }}"), false},
		{"variables that are pairs of literals", deny(pairs("value: [1]", `jmesPath: "[V,V]"`), "{{ v40 }}"), false},
		{"variables that are lists of variables", deny(pairs("jmesPath: request.object.data.x", `value: ["{{ V }}", "{{ V }}"]`), "{{ v40 }}"), false},
		{"outsides of ranges", head + "      validate: {pattern: {data: {size: \"" +
			repeat(14, " & ", func(i int) string { return fmt.Sprintf("%d!-%d", 10*i, 10*i+5) }) + "\"}}}\n", true},
		{"alternatives in one text", deny("", repeat(16, "-", func(i int) string { return fmt.Sprintf("{{ request.object.data.k%d || 'x' }}", i) })), true},
		{"first of many", deny("", "{{ "+repeat(20, " || ", func(i int) string { return fmt.Sprintf("request.object.data.k%d", i) })+" }}"), true},
		{"chained variables", deny(chain(4), "{{ v4 }}"), true},
		{"lists in lists that are judged under a condition", strings.Replace(
			head+"      validate: {pattern: {spec: "+repeat(25, "", func(int) string { return "[{(b): 1, c: " })+"x"+repeat(25, "", func(int) string { return "}]" })+"}}\n",
			"ConfigMap", "acme.io/v1/Widget", 1), false},
		{"a list flattened many times", strings.Replace(
			deny("", "{{ request.object.spec"+repeat(40, "", func(int) string { return "[]" })+" }}"),
			"ConfigMap", "acme.io/v1/Widget", 1), false},
		{"many chained variables", deny(chain(40), "{{ v40 }}"), true},
		{"many chained variables of unknown types", strings.Replace(deny(chain(20), "{{ v20 }}"), "ConfigMap", "acme.io/v1/Widget", 1), true},
		{"variables in lists", deny(chain(0)+repeat(40, "", func(i int) string {
			return fmt.Sprintf("        - {name: v%d, variable: {jmesPath: \"[v%d, v%d]\"}}\n", i+1, i, i)
		}), "{{ v40 }}"), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			result := compileText(t, c.source, setting{})
			rule := result.Rules[0]
			if !c.native {
				if len(rule.Codes) != 1 || rule.Codes[0] != diag.TooLarge {
					t.Fatalf("codes %v, want %v", rule.Codes, diag.TooLarge)
				}
				return
			}
			if rule.Target != translate.Native {
				t.Fatalf("target %s, codes %v", rule.Target, rule.Codes)
			}
			for _, o := range result.Objects {
				for _, v := range o.Policy.Spec.Validations {
					if n := len(v.Expression); n > 50*len(c.source) {
						t.Errorf("an expression of %d characters for a policy of %d", n, len(c.source))
					}
				}
			}
		})
	}
}
