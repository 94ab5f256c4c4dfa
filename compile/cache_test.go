package compile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// With a cache the result is the same as without, whatever came and went.
func TestCache(t *testing.T) {
	long := strings.Repeat("x", 110_000) // which the API server refuses
	first := read(t, labels("p", "a", long, "b")+labels("q", "c"))
	second := first
	second.Policies = append(read(t, labels("p", "other")).Policies, first.Policies[1:]...)
	o := options(t)
	print := func(in compile.Input, cache *compile.Cache) string {
		o := o
		o.Cache = cache
		r := compile.Policies(in, o)
		var all []any
		for _, o := range r.Objects {
			all = append(all, o.All()...)
		}
		data, err := vap.Marshal(all...)
		if err != nil {
			t.Fatal(err)
		}
		return told(r) + string(data) + fmt.Sprint(r.Diagnostics)
	}
	cache := compile.NewCache()
	for i, in := range []compile.Input{first, first, second, second, first} {
		if got, want := print(in, cache), print(in, nil); got != want {
			t.Errorf("compilation %d: got\n%s\nwant\n%s", i, got, want)
		}
	}
}

// With a cache the result is the same as without, whatever share of the steps a policy had
// before.
func TestCacheOfSteps(t *testing.T) {
	in := read(t, labels("p", "a", "b")+labels("q", "c"))
	o := options(t)
	cache := compile.NewCache()
	seen := map[string]bool{}
	for i, steps := range []int64{100_000, 300, 100_000, 300, 10, 500, 400, 350, 100_000} {
		o.Steps = func(*policy.Policy) int64 { return steps }
		o.Cache = nil
		want := told(compile.Policies(in, o))
		o.Cache = cache
		if got := told(compile.Policies(in, o)); got != want {
			t.Errorf("compilation %d, with %d steps: got\n%s\nwant\n%s", i, steps, got, want)
		}
		seen[want] = true
	}
	if len(seen) < 2 {
		t.Error("as many steps as that do not matter")
	}
}

// BenchmarkOneOfMany compiles a thousand policies of which one has changed.
func BenchmarkOneOfMany(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		text.WriteString(labels(fmt.Sprintf("p%d", i), "a", "b?*"))
	}
	in := read(b, text.String())
	o := options(b)
	o.Translate.Pack, o.Cache = "match", compile.NewCache()
	compile.Policies(in, o)
	b.ReportAllocs()
	for b.Loop() {
		changed := *in.Policies[500]
		in.Policies[500] = &changed
		compile.Policies(in, o)
	}
}
