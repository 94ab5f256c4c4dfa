package interp

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Context entries that each have the one before twice end where the data are larger than
// the limit, and before these are built or gone through. Bytes stand for work.
func TestEntriesThatDouble(t *testing.T) {
	const most = 100 << 20
	for name, pair := range map[string]string{
		"a query":             `{jmesPath: "[V, V]"}`,
		"a query that joins":  `{jmesPath: "[V, V][]"}`,
		"a text":              `{value: "{{ V }}{{ V }}"}`,
		"a list":              `{value: ["{{ V }}", "{{ V }}"]}`,
		"a map":               `{value: {a: "{{ V }}", b: "{{ V }}"}}`,
		"a text in a query":   `{jmesPath: "to_string([V, V])"}`,
		"a default":           `{jmesPath: "nothing", default: ["{{ V }}", "{{ V }}"]}`,
		"a query for a value": `{value: ["{{ V }}", "{{ V }}"], jmesPath: "[@, @]"}`,
	} {
		for _, limit := range []int{0, -1} { // the default, and none
			var entries strings.Builder
			entries.WriteString("- {name: v0, variable: {value: [x]}}\n")
			for i := range 40 {
				fmt.Fprintf(&entries, "- {name: v%d, variable: %s}\n", i+1, strings.ReplaceAll(pair, "V", fmt.Sprint("v", i)))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := shows(t, strings.TrimSpace(entries.String()), "length(v40)", &Offline{}, Limits{Context: limit})
			runtime.ReadMemStats(&after)
			made := after.TotalAlloc - before.TotalAlloc
			if limit < 0 {
				made /= 8 // who asks for no limit has one that is larger
			}
			if got.Status != Error || made > most {
				t.Errorf("%s, with the limit %d: %s, %d MB: %s", name, limit, got.Status, made>>20, got.Message)
			}
		}
	}
}

// Policies in CEL whose variables share what they have end before somebody writes it out:
// by what stands in them, or by what comes of the object. Bytes stand for work.
func TestPoliciesInCELThatDouble(t *testing.T) {
	const most = 100 << 20
	chain := func(n int, first, next string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "variables:\n- {name: v0, expression: '%s'}\n", first)
		for i := range n {
			fmt.Fprintf(&b, "- {name: v%d, expression: '%s'}\n", i+1, strings.ReplaceAll(next, "V", fmt.Sprint("variables.v", i)))
		}
		return b.String()
	}
	add := func(value string) string {
		return patchBy(`[JSONPatch{op: "add", path: "/data/x", value: ` + value + `}]`)
	}
	const numbers, list, lists = "[1, 2, 3, 4, 5, 6, 7, 8]", "V + V", "dyn([V, V, V, V, V, V, V, V])"
	for name, spec := range map[string]string{
		"a list in a patch":           chain(39, numbers, list) + add("variables.v39"),
		"a list in an object":         chain(39, numbers, list) + apply(`Object{data: variables.v39}`),
		"lists in lists":              chain(12, `dyn(["a"])`, lists) + add("variables.v12"),
		"a text of lists":             chain(8, `dyn(["a"])`, lists) + add(`json.marshal({"a": variables.v8})`),
		"in one expression":           add("cel.bind(a, " + numbers + ", cel.bind(b, [a, a, a, a, a, a, a, a], cel.bind(c, [b, b, b, b, b, b, b, b], cel.bind(d, [c, c, c, c, c, c, c, c], cel.bind(e, [d, d, d, d, d, d, d, d], cel.bind(f, [e, e, e, e, e, e, e, e], f))))))"),
		"an object many times":        chain(1, "["+strings.Repeat("1, ", 199)+"1]", "V.map(x, V.map(y, object))") + add("variables.v1"),
		"an object many times, again": chain(0, "["+strings.Repeat("1, ", 199)+"1]", "") + add("variables.v0.map(x, variables.v0.map(y, object))"),
		"a text of many objects":      chain(0, "["+strings.Repeat("1, ", 199)+"1]", "") + add(`json.marshal({"a": variables.v0.map(x, variables.v0.map(y, object))})`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := mutate(t, mutatingPolicy(spec), &Request{Admission: create(object(t, configMap))}, nil)
		runtime.ReadMemStats(&after)
		made := after.TotalAlloc - before.TotalAlloc
		if r := got.Rules[0]; r.Status != Error || !strings.Contains(r.Message, "large") || made > most {
			t.Errorf("%s: %d MB: %s: %s", name, made>>20, r.Status, r.Message)
		}
	}
}

// So do rules of CEL, before they compare what their variables share.
func TestRulesOfCELThatDouble(t *testing.T) {
	var variables strings.Builder
	variables.WriteString(`{name: v0, expression: "[1, 2, 3, 4, 5, 6, 7, 8]"}`)
	for i := range 39 {
		fmt.Fprintf(&variables, `, {name: v%d, expression: "variables.v%d + variables.v%[2]d"}`, i+1, i)
	}
	for _, expression := range []string{"variables.v39 == variables.v39", "variables.v39.sum() > 3", "variables.v39.exists(x, x == 9)"} {
		got := judgeOne(t, widgetPolicy("validate: {cel: {variables: ["+variables.String()+"], expressions: [{expression: \""+expression+"\"}]}}"),
			&Request{Admission: create(object(t, widget))}, nil)
		if got.Status != Error || !strings.Contains(got.Message, "too large") {
			t.Errorf("%s: %s: %s", expression, got.Status, got.Message)
		}
	}
}
