package apiserver

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
)

// Strings that matter stay, and so does what is written in a way of its own.
func TestWithoutLiterals(t *testing.T) {
	for _, c := range []struct {
		text, plain string
		matter      bool
	}{
		{`object.a == 'x' && "y'" in object.b`, `object.a == '' && "" in object.b`, false},
		{`object.a['x'].b`, `object.a[''].b`, false},
		{`object.a.matches('(')`, `object.a.matches('(')`, true},
		{"duration \n('x') > object.a", "duration \n('x') > object.a", true},
		{`object.string == 'x'`, `object.string == ''`, false},
		{`duration('x') > duration(object.a)`, `duration('x') > duration(object.a)`, true},
		{`object.a == 'x\'y'`, `object.a == 'x\'y'`, false},
		{`object.a == r'x'`, `object.a == r'x'`, false},
		{`object.a == '''x'''`, `object.a == '''x'''`, false},
		{"object.a == 'x\ny'", "object.a == 'x\ny'", false},
		{`object.a == 'x`, `object.a == 'x`, false},
		{`object.a == 'x' // it's x`, `object.a == 'x' // it's x`, false},
	} {
		if plain, matter := withoutLiterals(c.text); plain != c.plain || matter != c.matter {
			t.Errorf("%s: %s, %v, want %s, %v", c.text, plain, matter, c.plain, c.matter)
		}
	}
}

// Policies that differ in words alone are compiled once; a policy whose variable is of
// another type is not.
func TestCompiledOnce(t *testing.T) {
	c := NewChecker(cel.Latest)
	validate := func(variable string, i int) {
		p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		p.Spec.Variables = []admissionregistrationv1.Variable{{Name: "a", Expression: variable}}
		p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "c", Expression: fmt.Sprintf("object.metadata.name == 'n%d'", i)}}
		p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("variables.a == 'x%d'", i)}}
		c.Validate(p)
	}
	validate("object.a + 'y'", 0)
	once := len(c.known)
	for i := range 20 {
		validate(fmt.Sprintf("object.a + 'y%d'", i), i)
	}
	if len(c.known) != once {
		t.Errorf("%d compilations for policies of one form, and %d for one of them", len(c.known), once)
	}
	for i := range 3 {
		validate("size(object.a)", i)
	}
	if want := once + 2 + 2; len(c.known) != want { // the variable, and errors, which quote what they are about
		t.Errorf("%d compilations with a variable of another type, want %d", len(c.known), want)
	}
}

// What is known stays below a bound, over any number of policies.
func TestKnownIsBounded(t *testing.T) {
	c := NewChecker(cel.Latest)
	name := strings.Repeat("a", 4000)
	for i := range maxKnown / len(name) / 2 {
		c.compile(fmt.Sprintf("objct.%s%d", name, i), reach{})
	}
	size := 0
	for key, result := range c.known {
		size += len(key.text) + len(result.problem)
	}
	if size == 0 || size > maxKnown || size != c.knownSize {
		t.Errorf("%d bytes of texts are known, and %d are counted", size, c.knownSize)
	}
}
