package expr

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// A fixedWorld is the same at every call.
type fixedWorld struct{}

func (fixedWorld) Now() time.Time {
	return time.Date(2024, 2, 3, 4, 5, 6, 0, time.FixedZone("", 3600))
}

func (fixedWorld) Random(n int) int { return n / 2 }

func (fixedWorld) Resolve(_ context.Context, host string) ([]netip.Addr, error) {
	switch host {
	case "inside":
		return []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")}, nil
	case "outside":
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}
	return nil, errors.New("no such host")
}

// A fixedScope is a map that is looked up name by name.
type fixedScope map[string]any

func (s fixedScope) Lookup(name string) (Value, bool, error) {
	if name == "broken" {
		return Value{}, false, errors.New("broken entry")
	}
	v, ok := s[name]
	return Value{Data: v}, ok, nil
}

func fixedSurroundings() Surroundings {
	return Surroundings{World: fixedWorld{}, NormalizeImage: func(reference string) (string, error) {
		if strings.Contains(reference, " ") {
			return "", errors.New("bad image reference")
		}
		return "docker.io/" + reference + ":latest", nil
	}}
}

type row struct {
	expr string
	want string // the JSON of the result, or ! and a part of the error
}

func checkRows(t *testing.T, data any, rows []row) {
	t.Helper()
	for _, r := range rows {
		e, bad := jmespath.Parse(r.expr, diag.Pos{})
		if bad != nil {
			t.Errorf("%s: %v", r.expr, bad)
			continue
		}
		got, err := Eval(t.Context(), e, Value{Data: data}, fixedSurroundings())
		report(t, r, got.Data, err)
	}
}

func report(t *testing.T, r row, got any, err error) {
	t.Helper()
	if want, fails := strings.CutPrefix(r.want, "!"); fails {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want the error %s", r.expr, got, err, want)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v, want %s", r.expr, err, r.want)
		return
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Errorf("%s: %v", r.expr, err)
	} else if string(b) != r.want {
		t.Errorf("%s: %s, want %s", r.expr, b, r.want)
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// specified are the rows of section 19.4 of the semantics, for the object there.
func specified() []row {
	return []row{
		{"a.c", `!Unknown key "c"`},
		{"a.b.c", "null"},
		{"a.c || 'd'", `"d"`},
		{"l[*].x", "[1]"},
		{"l[].y", "[]"},
		{"z[].y", "null"},
		{"z[*].y", "null"},
		{"z[0]", `!Unknown key "z"`},
		{"l[?x > `0`]", `[{"x":1}]`},
		{"length(z)", "!invalid type"},
		{"n > `2`", "true"},
		{"n > '2'", "null"},
		{"compare('a','a') == `0`", "true"}, // false to Kyverno: deviation 8
		{"z && n", "null"},
		{"n && z", `!Unknown key "z"`},
		{"a | z", "null"},
		{"{p: z, q: n}", `{"p":null,"q":3}`},
	}
}

func TestSpecifiedExpressions(t *testing.T) {
	checkRows(t, parsed(t, `{"a":{"b":null},"l":[{"x":1},{}],"n":3}`), specified())
}

func TestMissingKeys(t *testing.T) {
	data := parsed(t, `{"a":{"b":null},"l":[{"x":1},{}],"n":3,"m":{"k":{"x":1},"j":{}},"s":"text"}`)
	checkRows(t, data, []row{
		{"z", `!Unknown key "z"`},
		{"z.b", `!Unknown key "z"`},
		{"n.b", "null"},
		{"s.b", "null"},
		{"l.b", "null"},
		{"z == `null`", "true"},
		{"z != n", "true"},
		{"z < n", "null"},
		{"!z", "true"},
		{"z || y", "null"},
		{"not_null(z, 'd')", `"d"`},
		{"z | n", "null"},
		{"z.*", "null"},
		{"z[?x]", "null"},
		{"z[0:1]", "null"},
		{"z.y[*]", `!Unknown key "z"`}, // the projection begins at y
		{"z.y[]", "null"},
		{"z.y[0]", `!Unknown key "z"`},
		{"l[?y]", "[]"},
		{"l[?x].y", "[]"},
		{"l[*].[x, y]", "[[1,null],[null,null]]"},
		{"m.*.x", "[1]"},
		{"map(&x, l)", `!Unknown key "x"`},
		{"map(&(x || 'd'), l)", `[1,"d"]`},
		// Other errors pass through all but three.
		{"abs('x') || 'd'", "!invalid type"},
		{"[abs('x')]", "!invalid type"},
		{"abs('x')[*]", "!invalid type"},
		{"abs('x')[]", "null"},
		{"abs('x')[?y]", "null"},
		{"abs('x').*", "null"},
	})
}

func TestLanguage(t *testing.T) {
	data := parsed(t, `{"l":[0,1,2,3,4],"o":{"b":{"c":[1,2]},"a":{"c":[3]}},"n":3,"s":"","f":false,"e":{},"nested":[[1,[2]],3,[]],"k-x":1}`)
	checkRows(t, data, []row{
		{"@.n", "3"},
		{`"k-x"`, "1"},
		{"l[1]", "1"},
		{"l[-1]", "4"},
		{"l[5]", "null"},
		{"l[-6]", "null"},
		{"n[0]", "null"},
		{"l[1:3]", "[1,2]"},
		{"l[:-1]", "[0,1,2,3]"},
		{"l[::-2]", "[4,2,0]"},
		{"l[3:0:-1]", "[3,2,1]"},
		{"l[-100:100]", "[0,1,2,3,4]"},
		{"l[100:-100:-1]", "[4,3,2,1,0]"},
		{"l[::0]", "!step"},
		{"l[::9223372036854775807]", "[0]"},
		{"l[::-9223372036854775808]", "[4]"},
		{"n[0:1]", "null"},
		{"nested[]", "[1,[2],3]"},
		{"nested[][]", "[1,2,3]"},
		{"o.*.c", "[[3],[1,2]]"},
		{"o.*.c[]", "[3,1,2]"},
		{"o.*.to_string(@)", `["null","null","{\"c\":[3]}","{\"c\":[1,2]}"]`},
		{"o.*.length(@)", "!invalid type"}, // of the null in front
		{"e.*.length(@)", "[]"},
		{"*.c", "[]"},
		{"o[*]", "null"},
		{"l.*", "null"},
		{"l[?@ > `2`]", "[3,4]"},
		{"s || f || e || n", "3"},
		{"n && s", `""`},
		{"f && z", "false"},
		{"`0` || 'x'", "0"},
		{"!`0`", "false"},
		{"!e", "true"},
		{"n == `3.0`", "true"},
		{"n == '3'", "false"},
		{"s == `null`", "false"},
		{"o.a == `{\"c\": [3]}`", "true"},
		{"l[?@ == `1`] | [0]", "1"},
		{"`null`.[a]", "null"},
		{"`null`.{a: b}", "null"},
		{"{a: n, a: s}", `{"a":""}`},
		{"l[*].{v: @} | [1]", `{"v":1}`},
		{"!o.a", "null"}, // (!o).a
		{"!(o.a)", "false"},
	})
}

func TestOneTypeOfNumber(t *testing.T) {
	data := map[string]any{"i": int64(3), "f": 3.0, "li": []any{int64(1), int64(2)}, "big": int64(9007199254740993)}
	checkRows(t, data, []row{
		{"i == f", "true"},
		{"i == `3`", "true"},
		{"i > `2`", "true"},
		{"i <= f", "true"},
		{"li == `[1, 2]`", "true"},
		{"{a: li} == {a: `[1, 2]`}", "true"},
		{"contains(li, `2`)", "true"},
		{"max(li)", "2"},
		{"type(i)", `"number"`},
		{"to_number(i)", "3"},
		{"abs(i)", "3"},
		{"add(i, f)", "6"},
		{"lookup(li, i)", "null"},
		{"to_string(big)", `"9007199254740993"`},
		{"regex_match('^3$', i)", "true"},
		{"regex_match('^3$', f)", "true"},
		{"regex_match('^0.1$', `0.1`)", "true"},
		{"pattern_match('16777217', `16777217`)", "true"}, // 16777216 to Kyverno
		{"length(li) == `2`", "true"},
	})
}

func TestScope(t *testing.T) {
	s := fixedScope{"a": map[string]any{"b": "c"}}
	checkRows(t, s, []row{
		{"a.b", `"c"`},
		{"@.a.b", `"c"`},
		{"z", `!Unknown key "z"`},
		{"z || 'd'", `"d"`},
		{"broken || 'd'", "!broken entry"},
		{"[a.b]", `["c"]`},
		{"@", "!whole context"},
		{"keys(@)", "!whole context"},
		{"*", "!whole context"},
		{"@ == a", "!whole context"},
	})
}

func TestEvalIsBounded(t *testing.T) {
	e, bad := jmespath.Parse("@"+strings.Repeat(" | [@, @]", 200)+" | to_string(@)", diag.Pos{})
	if bad != nil {
		t.Fatal(bad)
	}
	if _, err := Eval(t.Context(), e, Value{Data: "x"}, Surroundings{}); err == nil || !strings.Contains(err.Error(), "too many steps") {
		t.Errorf("doubling: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list := make([]any, 5000)
	e, _ = jmespath.Parse("[][]", diag.Pos{})
	if _, err := Eval(ctx, e, Value{Data: list}, Surroundings{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSubstitute(t *testing.T) {
	s := fixedScope{
		"a": "A", "n": int64(5), "f": 2.5, "nil": nil, "yes": true,
		"m": map[string]any{"x": "<1>", "A": "deep", "k y": 1.0}, "l": []any{"p", int64(1)},
		"quote": `it's \ "so"`, "var": "{{ a }}", "expr": "m.x",
	}
	for _, r := range []row{
		{"plain", `"plain"`},
		{"{{ n }}", "5"},
		{"{{ m.x }}", `"\u003c1\u003e"`},
		{"{{ l }}", `["p",1]`},
		{"{{ nil }}", "null"},
		{"x {{ a }}{{ n }} y", `"x A5 y"`},
		{"{{ f }}!", `"2.5!"`},
		{"{{ nil }}!", `"null!"`},
		{"{{ yes }}!", `"true!"`},
		{"{{ l }}!", `"[\"p\",1]!"`},
		{"{{ m.x }} {{ {x: m.x} }}", `"\u003c1\u003e {\"x\":\"\\u003c1\\u003e\"}"`},
		{`\{{ a }} {{ a }}`, `"{{ a }} A"`},
		{"{{ m.{{ a }} }}", `"deep"`},
		{"{{ {{ expr }} }}", `"\u003c1\u003e"`},
		{`{{ m."{{ a }}" }}`, `"deep"`},
		{`{{ m."k {{ 'y' }}" }}`, "1"},
		{"{{ to_upper('{{ quote }}') }}", `"IT'S \\ \"SO\""`},
		{"{{ length('{{ l }}') }}", "7"},
		{"{{ '{{ nil }}' }}", `"null"`},
		{"{{ var }}", `"{{ a }}"`}, // "A" to Kyverno: deviation 5
		{"{{ var }}!", `"{{ a }}!"`},
		{"{{- a }}!", `"A!"`},
		{"{{- n }}", "5"},
		{"{{- n }}!", "!must be a string"},
		{"{{ z }}", `!failed to resolve z: Unknown key "z" in path`},
		{"{{ z || 'd' }}", `"d"`},
		{"{{ '{{ z }}' || 'd' }}", "!failed to resolve z"},
		{"{{ yes || '{{ z }}' }}", "!failed to resolve z"},
		{"{{ {{ quote }} }}", "!incorrect query"},
		{"{{ time_now() }}", `"2024-02-03T04:05:06+01:00"`},
		{"x $(y) {{ a }}", "!reference"},
	} {
		tmpl, bad := jmespath.ParseTemplate(r.expr, diag.Pos{})
		if bad != nil {
			t.Errorf("%s: %v", r.expr, bad)
			continue
		}
		got, err := Substitute(t.Context(), tmpl, s, fixedSurroundings())
		report(t, r, got.Data, err)
	}
}

func TestUnknownKeyIsATypedError(t *testing.T) {
	tmpl, _ := jmespath.ParseTemplate("x {{ a.z }}", diag.Pos{})
	_, err := Substitute(t.Context(), tmpl, fixedScope{"a": map[string]any{}}, fixedSurroundings())
	if !IsUnknownKey(err) {
		t.Errorf("%v is no unknown key", err)
	}
	tmpl, _ = jmespath.ParseTemplate("x {{ abs('z') }}", diag.Pos{})
	if _, err = Substitute(t.Context(), tmpl, fixedScope{}, fixedSurroundings()); err == nil || IsUnknownKey(err) {
		t.Errorf("%v is an unknown key", err)
	}
}

// FuzzEval holds the laws that no expression panics on any data, that the same
// expression gives the same result twice, and that data is not changed.
func FuzzEval(f *testing.F) {
	data := `{"a":{"b":null},"l":[{"x":1},{}],"n":3,"s":"1Gi"}`
	for _, r := range append(specified(), functionRows()...) {
		f.Add(r.expr, data)
	}
	f.Fuzz(func(t *testing.T, expr, data string) {
		e, bad := jmespath.Parse(expr, diag.Pos{})
		var v any
		if bad != nil || json.Unmarshal([]byte(data), &v) != nil || strings.Contains(expr, "random") {
			return
		}
		before, _ := json.Marshal(v)
		got, err := Eval(t.Context(), e, Value{Data: v}, fixedSurroundings())
		again, err2 := Eval(t.Context(), e, Value{Data: v}, fixedSurroundings())
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%s: %v, then %v", expr, err, err2)
		}
		if err == nil && !isNaN(got.Data) && !cmp.Equal(got.Data, again.Data) {
			t.Fatalf("%s: %v, then %v", expr, got, again)
		}
		if after, _ := json.Marshal(v); string(after) != string(before) {
			t.Fatalf("%s changes %s to %s", expr, before, after)
		}
	})
}

// isNaN tells whether a value has no JSON: one that holds a NaN or an infinity.
func isNaN(v any) bool {
	_, err := json.Marshal(v)
	return err != nil
}

// TestValuesAreNotTooDeep pins that what is put together of data stays as flat as
// data can be, so that whatever walks it ends.
func TestValuesAreNotTooDeep(t *testing.T) {
	e, bad := jmespath.Parse("@"+strings.Repeat(" | [@]", 2000), diag.Pos{})
	if bad != nil {
		t.Fatal(bad)
	}
	value := Value{Data: "x"}
	var err error
	for range 6 {
		if value, err = Eval(t.Context(), e, value, Surroundings{}); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "levels") {
		t.Errorf("got %v", err)
	}
}

// Expressions share steps where the context says so, each of which is far below its own bound.
func TestSharedSteps(t *testing.T) {
	e, bad := jmespath.Parse("a[].to_string(@)", diag.Pos{})
	if bad != nil {
		t.Fatal(bad)
	}
	list := make([]any, 1000)
	ctx := WithSteps(t.Context(), 100_000)
	evaluated := 0
	var err error
	for ; err == nil && evaluated < 1000; evaluated++ {
		_, err = Eval(ctx, e, Value{Data: map[string]any{"a": list}}, Surroundings{})
	}
	if err == nil || !strings.Contains(err.Error(), "too many steps for one request") || evaluated < 5 || evaluated > 60 {
		t.Errorf("the expression %d: %v", evaluated, err)
	}
	if _, err := Eval(t.Context(), e, Value{Data: map[string]any{"a": list}}, Surroundings{}); err != nil {
		t.Errorf("of another request: %v", err)
	}
}
