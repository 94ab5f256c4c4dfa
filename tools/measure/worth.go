package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mechanisms has what can be off: a file, a function of it that shortens expressions, and its body
// where it is off.
//
//go:embed worth.txt
var mechanisms string

// A mechanism is a function, and another body of it.
type mechanism struct{ file, function, body string }

func (m mechanism) String() string { return "`" + m.function + "` of " + m.file }

// readMechanisms reads worth.txt.
func readMechanisms(text string) (out []mechanism, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		place, body, ok := strings.Cut(line, "|")
		where := strings.Fields(place)
		if !ok || len(where) != 2 {
			return nil, fmt.Errorf("worth.txt: %q is not FILE FUNCTION | BODY", line)
		}
		out = append(out, mechanism{where[0], where[1], strings.TrimSpace(body)})
	}
	return out, nil
}

// overlay names a file by which the go command takes the mechanism's file without it.
func (m mechanism) overlay(scratch string) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if text, err = m.in(text); err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	off, name := filepath.Join(scratch, "off.go"), filepath.Join(scratch, "overlay.json")
	if err := os.WriteFile(off, text, 0o600); err != nil {
		return "", err
	}
	if text, err = json.Marshal(map[string]any{"Replace": map[string]string{path: off}}); err != nil {
		return "", err
	}
	return name, os.WriteFile(name, text, 0o600)
}

// in is the text with the function's body in place of its own. What only the old body reads stays
// imported by a line at the end.
func (m mechanism) in(text []byte) ([]byte, error) {
	places := token.NewFileSet()
	parsed, err := parser.ParseFile(places, m.file, text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || nameOf(f) != m.function {
			continue
		}
		from, to := places.Position(f.Body.Lbrace).Offset, places.Position(f.Body.Rbrace).Offset
		out := slices.Concat(text[:from+1], []byte(m.body), text[to:])
		return append(out, usesOf(parsed)...), nil
	}
	return nil, fmt.Errorf("worth.txt: %s has no function %s", m.file, m.function)
}

// usesOf uses the imports of a file that a body may have been the last to use.
func usesOf(f *ast.File) []byte {
	var out bytes.Buffer
	for _, i := range f.Imports {
		switch i.Path.Value {
		case `"slices"`:
			out.WriteString("\nvar _ = slices.Contains[[]int]\n")
		case `"regexp"`:
			out.WriteString("\nvar _ = regexp.Compile\n")
		case `"strings"`:
			out.WriteString("\nvar _ = strings.Cut\n")
		}
	}
	return out.Bytes()
}

// expressions are those of a set, by their places.
type expressions map[string]string

// of are the expressions that the program emits for a set.
func expressionsOf(ctx context.Context, program string, paths []string) (expressions, error) {
	cmd := exec.CommandContext(ctx, program, paths...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, problems.Bytes())
	}
	out := expressions{}
	for line := range strings.Lines(string(text)) {
		place, expression, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out[place] = expression
	}
	return out, nil
}

// worth compiles all sets without each mechanism.
func worth(ctx context.Context, sets []set, scratch string, c choices) error {
	all, err := readMechanisms(mechanisms)
	if err != nil {
		return err
	}
	base := make([]expressions, len(sets))
	if err := each(ctx, sets, scratch, base); err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprint(&out, "| without |")
	for i, s := range sets {
		fmt.Fprintf(&out, " %s (%d) |", s.name, len(base[i]))
	}
	fmt.Fprintf(&out, " growth |\n|%s\n", strings.Repeat("---|", 2+len(sets)))
	for _, m := range all {
		if !strings.Contains(m.String(), c.only) {
			continue
		}
		overlay, err := m.overlay(scratch)
		if err != nil {
			return err
		}
		without := make([]expressions, len(sets))
		if err := each(ctx, sets, scratch, without, "-overlay="+overlay); err != nil {
			return fmt.Errorf("without %s: %w", m, err)
		}
		row := rowOf(m, base, without)
		fmt.Fprint(os.Stderr, row)
		out.WriteString(row)
	}
	return write("worth", out.String(), c.update)
}

// each builds the program and has it compile each set.
func each(ctx context.Context, sets []set, scratch string, out []expressions, flags ...string) (err error) {
	program := filepath.Join(scratch, "lower")
	if err := build(ctx, program, flags...); err != nil {
		return err
	}
	for i, s := range sets {
		if out[i], err = expressionsOf(ctx, program, s.paths); err != nil {
			return err
		}
	}
	return nil
}

// rowOf says how many expressions are others, and how much longer those of the sets are but for the
// fixtures, which are made to meet each mechanism.
func rowOf(m mechanism, base, without []expressions) string {
	row := "| " + m.String() + " |"
	var before, after int
	for i := range base {
		others := 0
		for place := range union(base[i], without[i]) {
			if base[i][place] != without[i][place] {
				others++
			}
		}
		if i < len(base)-1 {
			before, after = before+base[i].length(), after+without[i].length()
		}
		row += fmt.Sprintf(" %d |", others)
	}
	return row + fmt.Sprintf(" %+.2f %% |\n", 100*float64(after-before)/float64(max(1, before)))
}

func union(a, b expressions) map[string]bool {
	out := map[string]bool{}
	for place := range a {
		out[place] = true
	}
	for place := range b {
		out[place] = true
	}
	return out
}

// length is how many characters they have.
func (e expressions) length() (n int) {
	for _, x := range e {
		n += len(x)
	}
	return n
}
