package schema_test

import (
	"testing"

	"github.com/kvap/kvap/schema"
)

var pod = schema.GVK{Version: "v1", Kind: "Pod"}

// BenchmarkBuiltin is what every conversion pays at least once.
func BenchmarkBuiltin(b *testing.B) {
	for b.Loop() {
		if _, err := schema.Builtin("1.36"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuiltinAndPod is the price of a conversion of a rule on Pods.
func BenchmarkBuiltinAndPod(b *testing.B) {
	for b.Loop() {
		s, err := schema.Builtin("1.36")
		if err != nil {
			b.Fatal(err)
		}
		if s.Type(pod) == nil {
			b.Fatal("no Pod")
		}
	}
}

// BenchmarkAllTypes is the most that can be paid.
func BenchmarkAllTypes(b *testing.B) {
	for b.Loop() {
		s, err := schema.Builtin("1.36")
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range s.Resources("*", "*", "*") {
			s.Type(r.GVK)
		}
	}
}
