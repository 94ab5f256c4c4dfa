package cel

import (
	"fmt"
	"testing"
)

// typical is an expression as a policy of some size has it.
func typical() Bool {
	s := &Scope{}
	spec := Ident("object").Field("spec")
	var checks []Bool
	for i := range 8 {
		field := fmt.Sprintf("field%d", i)
		checks = append(checks, s.All(spec.Optional("containers").OrValue(List()), "c", func(c Value) Bool {
			sc := c.Field("securityContext")
			return Or(
				Not(c.Has("securityContext")),
				And(c.Has("securityContext"), sc.Has(field), sc.Field(field).In(Strings("a", "b", "c"))),
				And(Not(sc.Has(field)), c.Field("image").Matches(`^(docker\.io/)?[a-z]+`)),
			)
		}))
	}
	return And(checks...)
}

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		typical()
	}
}

func BenchmarkString(b *testing.B) {
	v := typical()
	for b.Loop() {
		_ = v.String()
	}
}

func BenchmarkText(b *testing.B) {
	v := typical()
	for b.Loop() {
		v.Text(100)
	}
}

func BenchmarkSimplify(b *testing.B) {
	v := typical()
	for b.Loop() {
		v.Simplify()
	}
}

func BenchmarkCost(b *testing.B) {
	v := typical()
	for b.Loop() {
		Cost(v.Value, nil)
	}
}

func BenchmarkParse(b *testing.B) {
	text := typical().String()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

// A chain of many terms must not be quadratic.
func BenchmarkWide(b *testing.B) {
	var terms []Bool
	for i := range 3000 {
		terms = append(terms, Ident("object").Field(fmt.Sprintf("f%d", i)).Eq(Int(int64(i))))
	}
	for b.Loop() {
		Or(terms...).Simplify()
	}
}
