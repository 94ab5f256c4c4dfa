package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// The README's example is the policy of convert.txtar, and shows what comes out.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile("testdata/script/convert.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range script.Files {
		switch f.Name {
		case "policy.yaml":
			if !strings.Contains(string(readme), "```yaml\n"+string(f.Data)+"```") {
				t.Errorf("README.md does not show %s as it is in convert.txtar", f.Name)
			}
		case "want.yaml":
			if e := expression(string(f.Data)); !strings.Contains(string(readme), "```\n"+e+"```") {
				t.Errorf("README.md does not show this expression:\n%s", e)
			}
		}
	}
}

// expression is the first block behind "expression:", without its indentation.
func expression(objects string) string {
	_, rest, _ := strings.Cut(objects, "expression: |-\n")
	var b strings.Builder
	for line := range strings.Lines(rest) {
		text, ok := strings.CutPrefix(line, "      ")
		if !ok {
			break
		}
		b.WriteString(text)
	}
	return b.String()
}
