package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/command"
	"github.com/kvap/kvap/internal/exit"
)

// What is wrong with the input is said before anything starts.
func TestWrongInput(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"nowhere.yaml"}, "nowhere.yaml: no such file or directory"},
		{[]string{"--mode", "loud"}, "--mode loud: want one of"},
		{[]string{write("misspelt.yaml", "apiVersion: kyverno.io/v1\nkind: ClusterPolcy\nmetadata: {name: owners}\nspec: {rules: []}\n")},
			`misspelt.yaml:2:7: kyverno.io has no kind "ClusterPolcy"; did you mean ClusterPolicy? [KV108]`},
		{[]string{write("template.yaml", "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata:\n  name: {{ .Release.Name }}\nspec: {rules: []}\n")},
			"template.yaml:4:10: this file is a template, not yet a policy; render it first, "},
	} {
		var errs bytes.Buffer
		if code := command.Run(newRoot(), c.args, strings.NewReader(""), io.Discard, &errs); code != exit.CodeUsage || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, errs.String())
		}
	}
}
