package expr

import (
	"runtime"
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// A short expression makes no large value: it ends in an error before that is built.
// Bytes stand for work: they do not depend on what else the machine does.
func TestGrowthIsBounded(t *testing.T) {
	const most = 100 << 20
	for step, times := range map[string]int{
		"[@,@]": 21, "[@,@][]": 21, "[*].[@,@][]": 21, "{a: @, b: @}": 21, "[@,@] | [*].[@,@]": 20,
		"join('', [@,@])": 21, "to_string([@,@])": 21, "[@,@] | to_string(@) | [@,@]": 20, "[to_string(@), to_string(@)]": 21,
		"items([@,@], 'k', 'v')": 21, "merge({a: @}, {b: @})": 21, "map(&[@,@], [@,@])": 21, "[@,@] | @ == @ && @": 21,
		"[@,@][] | sort_by(@, &to_string(@))": 21, "[@,@] | to_array(@) | reverse(@)": 21, "[@,@][] | [::-1]": 21,
		"replace_all(to_string(@), 'x', 'xx')": 21, "regex_replace_all('x', to_string(@), 'xx')": 21, "[@,@][] | [?@]": 21,
		"base64_encode(to_string(@))": 80, "[@,@][] | values({a: @, b: @})[]": 24, "split(join('x', [to_string(@), to_string(@)]), 'x')": 24,
	} {
		for _, data := range []string{`"x"`, `["<<<<<<<<<<<<<<<", "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""]`} {
			e, bad := jmespath.Parse("@"+strings.Repeat(" | "+step, times), diag.Pos{})
			if bad != nil {
				t.Fatalf("%s: %v", step, bad)
			}
			value := parsed(t, data)
			made, err := allocatedBy(t, e, value)
			for range 2 { // the buffers of encoding/json are kept for each core, and grow again on another
				again, _ := allocatedBy(t, e, value)
				made = min(made, again)
			}
			if made > most {
				t.Errorf("%s, %d times, on %s: %d MB, %v", step, times, data, made>>20, err)
			}
		}
	}
}

// allocatedBy is how many bytes evaluating takes, those that are free again too.
func allocatedBy(t *testing.T, e *jmespath.Expr, value any) (bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = Eval(t.Context(), e, Value{Data: value}, Surroundings{})
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}

// Each bound of a text holds by itself, for what alone is small enough.
func TestTextsAreBounded(t *testing.T) {
	const million = 1_000_000
	long := strings.Repeat("x", 5*million)
	for _, test := range []struct {
		query, want string
		data        any
	}{
		{"join('', @)", "a text is longer than", []any{long, long}},
		{"join(@[0], @[1])", "a text is longer than", []any{long, []any{"a", "b", "c"}}},
		{"to_string(@)", "a text is longer than", []any{long, long}},
		{"replace_all(@, 'x', '" + strings.Repeat("y", 2000) + "')", "a text is longer than", long[:5000]},
		{"replace(@, 'x', '" + strings.Repeat("y", 2000) + "', `5000`)", "a text is longer than", long[:5000]},
		{"regex_replace_all('x', @, '" + strings.Repeat("y", 2000) + "')", "a text is longer than", long[:5000]},
		{"regex_replace_all_literal('x', @, '" + strings.Repeat("y", 2000) + "')", "a text is longer than", long[:5000]},
		{"regex_replace_all('x', @, 'y')", "200000 matches or more", long[:million]},
		{"regex_match('" + strings.Repeat("(a{1000})", 50) + "', @)", "the regular expression is too large", "a"},
		{"regex_replace_all('" + strings.Repeat("(a{1000})", 50) + "', @, 'b')", "the regular expression is too large", "a"},
		{"regex_replace_all_literal('" + strings.Repeat("(a{1000})", 50) + "', @, 'b')", "the regular expression is too large", "a"},
		{"parse_yaml(@)", "the text is longer than 1048576 bytes", long[:1<<20+1]},
	} {
		e, bad := jmespath.Parse(test.query, diag.Pos{})
		if bad != nil {
			t.Fatalf("%.40s: %v", test.query, bad)
		}
		if _, err := Eval(t.Context(), e, Value{Data: test.data}, Surroundings{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40s: %v, want %q", test.query, err, test.want)
		}
	}
}

// So does that of a text with variables.
func TestFilledTextsAreBounded(t *testing.T) {
	tmpl, bad := jmespath.ParseTemplate("{{ a }}{{ a }}", diag.Pos{})
	if bad != nil {
		t.Fatal(bad)
	}
	s := fixedScope{"a": strings.Repeat("x", 5_000_000)}
	if _, err := Fill(t.Context(), tmpl, s, Surroundings{}); err == nil || !strings.Contains(err.Error(), "a text is longer than") {
		t.Errorf("%v, want that it is too long", err)
	}
}
