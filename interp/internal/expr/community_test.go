package expr

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	community "github.com/jmespath-community/go-jmespath"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// A writer makes up expressions that mean the same to the community library, up
// to missing keys. What differs is left out:
//   - functions behind a dot: they see the null that a missing key is to the library;
//   - the order of keys and values, which is random there, and so .* of maps with
//     several keys;
//   - multiselects of null, which are not null there;
//   - slices of strings, the average of nothing, and functions that are newer or not
//     in the library.
type writer struct{ *rand.Rand }

func (w writer) pick(of ...string) string { return of[w.IntN(len(of))] }

func (w writer) name() string { return w.pick("a", "b", "c", "l", "m", "n", "s", "zz") }

func (w writer) literal() string {
	return w.pick("`null`", "`true`", "`false`", "`0`", "`1`", "`2.5`", "''", "'x'", "'y z'", "`[]`", "`{}`", "`[1, 2]`", "`[\"x\", \"b\"]`", "`[{\"a\": 1}]`")
}

// chain is what can stand behind a dot.
func (w writer) chain(depth int) string {
	if depth <= 0 {
		return w.name()
	}
	switch w.IntN(7) {
	case 0:
		return w.chain(depth-1) + "." + w.name()
	case 1:
		return w.chain(depth-1) + fmt.Sprintf("[%d]", w.IntN(5)-2)
	case 2:
		return w.chain(depth-1) + "[*]" + w.rest(depth-1)
	case 3:
		return w.chain(depth-1) + "[]" + w.rest(depth-1)
	case 4:
		return w.chain(depth-1) + "[?" + w.expr(depth-1) + "]" + w.rest(depth-1)
	case 5:
		return "m.*" + w.rest(depth-1)
	}
	return w.name()
}

func (w writer) rest(depth int) string {
	return w.pick("", "", "[0]", "."+w.chain(depth-1))
}

func (w writer) expr(depth int) string {
	if depth <= 0 {
		return w.pick(w.name(), "@", w.literal())
	}
	switch w.IntN(12) {
	case 10:
		return "(`{\"a\": {\"b\": [1]}, \"n\": 3}` | [" + w.expr(depth-1) + ", " + w.expr(depth-1) + "])"
	case 11:
		return "(`{\"a\": {\"b\": [1]}, \"n\": 3}` | {p: " + w.expr(depth-1) + ", q: " + w.expr(depth-1) + "})"
	case 0:
		return w.expr(depth-1) + " | " + w.expr(depth-1)
	case 1:
		return w.expr(depth-1) + " || " + w.expr(depth-1)
	case 2:
		return w.expr(depth-1) + " && " + w.expr(depth-1)
	case 3:
		return "!" + w.expr(depth-1)
	case 4:
		return "(" + w.expr(depth-1) + ")" + w.pick("", "[0]", "[*]", "[]", "."+w.name())
	case 5:
		return "(" + w.expr(depth-1) + w.pick(" == ", " != ") + w.expr(depth-1) + ")"
	case 6:
		return "(" + w.pick("n", "`1`", "`2.5`") + w.pick(" < ", " <= ", " > ", " >= ") + w.pick("n", "`1`", "length(l)") + ")"
	case 7:
		return w.call(depth)
	case 8:
		return w.literal()
	}
	return w.chain(depth)
}

func (w writer) call(depth int) string {
	arg := func() string { return w.expr(depth - 1) }
	switch w.IntN(5) {
	case 0:
		return w.pick("abs", "ceil", "floor", "length", "max", "min", "reverse", "sort", "to_array", "to_string", "type") + "(" + arg() + ")"
	case 1:
		return w.pick("sort(keys(", "length(values(") + arg() + "))"
	case 2:
		return w.pick("contains", "ends_with", "join", "starts_with", "not_null", "merge") + "(" + arg() + ", " + arg() + ")"
	case 3:
		// Behind a pipe a missing key is null, to both.
		return "map(&(" + arg() + " | @), " + arg() + ")"
	}
	return w.pick("sort_by", "max_by", "min_by") + "(" + arg() + ", &(" + arg() + " | @))"
}

// search asks the library, which panics on some arguments and sorts in place.
func search(t *testing.T, text, data string) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return community.Search(text, parsed(t, data))
}

func TestCommunityAgrees(t *testing.T) {
	const json = `{"a":{"b":{"c":[1,2,{"a":"x"}]},"s":""},"b":[[1,2],[],3,null,"x"],"c":null,
		"l":[{"a":1,"n":2},{"a":2,"b":null},{}],"m":{"a":{"b":[1],"c":"y"}},"n":2.5,"s":"x y"}`
	data := parsed(t, json)
	w := writer{rand.New(rand.NewPCG(1, 2))}
	compared := 0
	for range 12_000 {
		text := w.expr(4)
		e, bad := jmespath.Parse(text, diag.Pos{})
		if bad != nil {
			if _, err := search(t, text, json); err == nil {
				t.Fatalf("%s: %v, but not to the library", text, bad)
			}
			continue
		}
		if printed := e.String(); printed != text {
			text = w.pick(text, printed)
		}
		want, err := search(t, text, json)
		if err != nil {
			continue // ours may still take it as null
		}
		got, err := Eval(t.Context(), e, Value{Data: data}, Surroundings{})
		if err != nil && !IsUnknownKey(err) {
			t.Fatalf("%s: %v, but %v to the library", text, err, want)
		}
		if !cmp.Equal(got.Data, want) {
			t.Fatalf("%s: %v, but %v to the library", text, got.Data, want)
		}
		compared++
	}
	if compared < 5_000 {
		t.Errorf("only %d expressions were compared", compared)
	}
}
