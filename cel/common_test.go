package cel

import (
	"math/rand/v2"
	"testing"
)

func TestCommon(t *testing.T) {
	for _, tt := range []struct{ text, path, name string }{
		{`pod.spec.a + pod.spec.?b.orValue(0)`, `pod.spec`, `spec`},
		{`pod.?metadata.?labels.?a == pod.?metadata.?labels.?b`, `pod.?metadata.?labels`, `labels`},
		{`size(pod.spec.?l.orValue([])) != size(pod.spec.?l.orValue([]).filter(x, x))`, `pod.spec.?l.orValue([])`, `l`},
		{`pod.spec.?l.orValue('a') == pod.spec.?l.orValue('b')`, `pod.spec.?l`, `l`},
		{`pod.spec.a.b == 1`, `pod.spec.a.b`, `b`},
		{`has(pod.spec.a) && pod.spec.a == 1`, `pod.spec`, `spec`},
		{`has(pod.spec) && pod.spec.a == 1`, `pod`, `pod`},
		{`pod.spec == pod`, `pod`, `pod`},
		{`x || pod.spec.a || pod.spec.b`, `pod`, `pod`},
		{`l.exists(x, pod.spec.a == x)`, `pod`, `pod`},
		{`pod.l.exists(x, pod.l == x)`, `pod.l`, `l`},
		{`pod.spec.a.exists(pod, pod.b) && pod.spec.b`, `pod.spec`, `spec`},
		{`pod['a'].b == pod['a'].b`, `pod`, `pod`},
		{`x.a`, `pod`, `pod`},
	} {
		if path, name := parse(t, tt.text).Common("pod"); path.String() != tt.path || name != tt.name {
			t.Errorf("%s: got %s, %s", tt.text, path, name)
		}
	}
}

// A name for the path that all reads have in common changes no outcome.
func TestCommonKeepsOutcome(t *testing.T) {
	t.Parallel()
	e := env(t, Latest)
	found := 0
	for seed := range uint64(20000) {
		s := &sower{r: rand.New(rand.NewPCG(seed, 17))}
		v := s.bool(2).AsBool().Rooted()
		path, name := v.Common("object")
		if name == "object" {
			continue
		}
		p, ok := program(t, e, v)
		if !ok {
			continue
		}
		x := Ident("common")
		q, ok := program(t, e, ForSome.Of(List(path), x, v.SubstituteCommon(path, x).AsBool()))
		if !ok {
			t.Fatalf("%s with a name for %s does not compile", v, path)
		}
		found++
		for range 20 {
			vars := map[string]any{"object": s.object(), "oldObject": s.object()}
			if want, got := outcome(p, vars), outcome(q, vars); !same(want, got) && !moody(p, q, vars) {
				t.Fatalf("%s\nis %v, with a name for %s\nit is %v\n%v", v, want, path, got, vars)
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d have a path in common", found)
	}
}
