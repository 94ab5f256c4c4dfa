package main

import (
	"os"
	"strings"
	"testing"
)

// Each mechanism that can be off is there.
func TestMechanisms(t *testing.T) {
	all, err := readMechanisms(mechanisms)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		text, err := os.ReadFile("../../" + m.file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.in(text); err != nil {
			t.Error(err)
		}
	}
}

// What is off has the body of its line, and the file goes on to compile: its imports are used.
func TestMechanismThatIsOff(t *testing.T) {
	const file = "package p\n\nimport \"slices\"\n\nfunc (s *set[T]) has(x int) bool {\n\treturn slices.Contains(s.xs, x)\n}\n"
	out, err := mechanism{"p.go", "set.has", "return false"}.in([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(out); !strings.Contains(got, "bool {return false}") || !strings.Contains(got, "var _ = slices.Contains") {
		t.Errorf("got\n%s", got)
	}
	if _, err := (mechanism{"p.go", "has", "return false"}).in([]byte(file)); err == nil {
		t.Error("a function that is not there")
	}
	if _, err := readMechanisms("cel/short.go Value.Short return v"); err == nil {
		t.Error("a line without a body")
	}
}
