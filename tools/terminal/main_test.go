package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// The picture in the repository is drawn from the script in the repository, and is XML.
func TestPictureIsInStep(t *testing.T) {
	script, err := txtar.ParseFile("../../" + plan().script)
	if err != nil {
		t.Fatal(err)
	}
	want, err := plan().draw(script)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/plan.svg")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("docs/plan.svg is not what the script prints; run make plot")
	}
	for d := xml.NewDecoder(strings.NewReader(string(want))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A picture of what no test runs is not drawn.
func TestOnlyWhatIsTested(t *testing.T) {
	script := txtar.Parse([]byte("exec kvap a\ncmp stdout a.txt\n-- a.txt --\nA <B>\n"))
	if got, err := (picture{"", "kvap a", "a.txt"}).draw(script); err != nil || !strings.Contains(string(got), ">A &lt;B&gt;</text>") {
		t.Errorf("%v\n%s", err, got)
	}
	for _, p := range []picture{{"", "kvap b", "a.txt"}, {"", "kvap a", "b.txt"}} {
		if _, err := p.draw(script); err == nil {
			t.Errorf("%v is drawn", p)
		}
	}
}
