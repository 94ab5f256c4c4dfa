package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kvap/kvap/tools/snippets"
)

// What the README says to copy works: the ways that need no cluster are run as they stand.
// test/e2e/deploy runs the other one.
func TestReadmeCommands(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	const files, leaving = "1. Convert files", "3. Leave Kyverno"
	commands := snippets.Under(readme, files, "sh") + snippets.Under(readme, leaving, "sh")
	const install = "go install github.com/kvap/kvap/cmd/kvap@latest\n" // what is built from these sources here
	if !strings.Contains(commands, install) || !strings.Contains(commands, "kvap migrate plan") {
		t.Fatalf("README.md has not all commands:\n%s", commands)
	}
	script := &txtar.Archive{
		Comment: []byte("exec sh -eux commands.sh\nstdout 'kind: ValidatingAdmissionPolicyBinding'\nstdout '0 disagreements'\nstdout '1 policy: 1 native'\n"),
		Files: []txtar.File{
			{Name: "commands.sh", Data: []byte(strings.Replace(commands, install, "", 1))},
			{Name: "owners.yaml", Data: []byte(snippets.Under(readme, files, "yaml"))},
		},
	}
	file := filepath.Join(t.TempDir(), "readme.txtar")
	if err := os.WriteFile(file, txtar.Format(script), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{file}, RequireExplicitExec: true})
}

// Every verb is in the README's tables, and no other.
func TestReadmeNamesVerbs(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		first, _, _ := strings.Cut(line[2:], " | ")
		for _, code := range strings.Split(first, "`") {
			if verb, ok := strings.CutPrefix(code, "kvap "); ok {
				named = append(named, verb)
			}
		}
	}
	verbs := []string{"completion"} // cobra's own
	for _, c := range newRoot("kvap").Commands() {
		if !c.Hidden {
			verbs = append(verbs, c.Name())
		}
	}
	slices.Sort(named)
	slices.Sort(verbs)
	if !slices.Equal(named, verbs) {
		t.Errorf("README.md has\n%q, the program has\n%q", named, verbs)
	}
}

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
			for _, e := range expressions(string(f.Data)) {
				if !strings.Contains(string(readme), "```\n"+e+"```") {
					t.Errorf("README.md does not show this expression:\n%s", e)
				}
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

// expressions are the blocks behind "expression:", without their indentation.
func expressions(objects string) []string {
	var out []string
	for _, rest := range strings.Split(objects, "expression: |-\n")[1:] {
		var b strings.Builder
		for line := range strings.Lines(rest) {
			text, ok := strings.CutPrefix(line, "      ")
			if !ok {
				break
			}
			b.WriteString(text)
		}
		out = append(out, b.String())
	}
	return out
}
