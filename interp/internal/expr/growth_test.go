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
	_, err = Eval(t.Context(), e, value, Surroundings{})
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}
