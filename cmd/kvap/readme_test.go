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

// What docs/migration.md shows of commands that need no cluster is what they print: it
// is compared with that in migrate-guide.txtar.
func TestMigrationGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile("testdata/script/migrate-guide.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(script.Comment)) {
		_, command, ok := strings.Cut(line, " kvap migrate ")
		if ok && !strings.Contains(string(guide), "\n$ kvap migrate "+strings.ReplaceAll(command, "'", `"`)) {
			t.Errorf("docs/migration.md does not show kvap migrate %s", command)
		}
	}
	for _, f := range script.Files {
		if strings.HasSuffix(f.Name, ".txt") && !strings.Contains(string(guide), "\n"+string(f.Data)+"```\n") {
			t.Errorf("docs/migration.md does not show %s as it is in migrate-guide.txtar", f.Name)
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
