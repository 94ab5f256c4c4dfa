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
