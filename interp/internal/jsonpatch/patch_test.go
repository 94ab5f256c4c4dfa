package jsonpatch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/interp/internal/jsonpatch"
)

// The operations themselves are in the tables of the interpreter's tests; here are
// the bounds.
func TestBounds(t *testing.T) {
	double := `- {op: add, path: /l/-, value: [1,1,1,1,1,1,1,1,1,1]}` + "\n" + strings.Repeat("- {op: copy, from: /l, path: /l/-}\n", 40)
	deep := "- {op: add, path: /l/-, value: {}}\n" + strings.Repeat("- {op: copy, from: /l, path: /l/-1"+strings.Repeat("/0", 900)+"}\n", 3)
	for _, tt := range []struct{ name, patch, want string }{
		{"copies of copies", double, "too much of the object"},
		{"an index far behind", "- {op: add, path: /x/999999999, value: 1}", "too far behind"},
		{"a path without end", "- {op: add, path: " + strings.Repeat("/a", 2000) + ", value: 1}", "more than 1000 steps"},
		{"a copy into nothing", deep, "no place"},
		{"an op that is no map", "- a", "must be a map"},
		{"a path that is no text", "- {op: add, path: 1, value: 1}", "a text under path"},
		{"a move from nowhere", "- {op: move, from: /zz/a, path: /b}", "nothing at /zz/a"},
		{"a test of a list's end", "- {op: test, path: /l/7, value: null}", "no index 7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := jsonpatch.Parse(tt.patch)
			if err == nil {
				_, _, err = p.Apply(map[string]any{"l": []any{int64(1)}})
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// What Diff makes of two objects makes one of the other.
func TestDiff(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		before, after := object(source, 3), object(source, 3)
		patch := jsonpatch.Diff(before, after)
		got, changed, err := patch.Apply(before)
		if err != nil {
			t.Fatalf("%v\n%v\n%v\n%v", err, before, after, patch)
		}
		if d := cmp.Diff(any(after), got); d != "" || changed != (len(patch) > 0) {
			t.Fatalf("changed: %v (-want +got):\n%s\n%v", changed, d, patch)
		}
	}
}

func object(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for range r.IntN(4) {
		m[fmt.Sprintf("%c/~", 'a'+rune(r.IntN(4)))] = value(r, depth-1)
	}
	return m
}

func value(r *rand.Rand, depth int) any {
	switch n := r.IntN(4); {
	case depth <= 0 || n == 0:
		return []any{"a", int64(1), nil, true}[r.IntN(4)]
	case n == 1:
		l := []any{}
		for range r.IntN(4) {
			l = append(l, value(r, depth-1))
		}
		return l
	}
	return object(r, depth)
}
