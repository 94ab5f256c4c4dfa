package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/cover"
)

const module = "github.com/kvap/kvap/"

// examples are rules of a few lines; what runs for them is what a newcomer has to read.
var examples = []struct{ name, rule string }{
	{"a pattern with one anchor", `validate: {pattern: {spec: {containers: [{(image): "*:latest", imagePullPolicy: Always}]}}}`},
	{"a deny with AnyNotIn", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.containers[].image || '' }}", operator: AnyNotIn, value: ["a:1", "b:*"]}]}}}`},
}

const exampleHead = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: example, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec: {validationFailureAction: Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, `

// reach counts what runs for each set, and for all before it.
func reach(ctx context.Context, sets []set, scratch string, c choices) error {
	program := filepath.Join(scratch, "lower")
	if err := build(ctx, program, "-cover", "-coverpkg=./translate/...,./cel,./tools/measure/lower"); err != nil {
		return err
	}
	var runs []coverage
	for _, s := range sets {
		run, err := covered(ctx, program, filepath.Join(scratch, s.name), s.paths)
		if err != nil {
			return err
		}
		if len(runs) > 0 {
			run = run.and(runs[len(runs)-1])
		}
		runs = append(runs, run)
	}
	var out bytes.Buffer
	if err := writeReach(&out, sets, runs); err != nil {
		return err
	}
	for i, e := range examples {
		file := filepath.Join(scratch, fmt.Sprintf("example%d.yaml", i))
		if err := os.WriteFile(file, []byte(exampleHead+e.rule+"}]}\n"), 0o600); err != nil {
			return err
		}
		run, err := covered(ctx, program, filepath.Join(scratch, fmt.Sprint("example", i)), []string{file})
		if err != nil {
			return err
		}
		all, own := run.functions(""), run.functions("translate")
		fmt.Fprintf(&out, "\nFor %s run %d functions in %d packages; of `translate` %d in %d files.\n",
			e.name, len(all), distinct(all, function.room), len(own), distinct(own, func(f function) string { return f.file }))
	}
	if c.list {
		real := runs[len(runs)-2]
		for _, f := range real.all() {
			if real.hit[f] == 0 {
				fmt.Println(f)
			}
		}
	}
	return write("reach", out.String(), c.update)
}

// A function of the core, where it stands and how long it is.
type function struct {
	file string // below the module
	name string
	line int
	last int
}

func (f function) String() string { return fmt.Sprintf("%s:%d %s", f.file, f.line, f.name) }

func (f function) room() string { return path.Dir(f.file) }

// coverage is what ran: of each function how many statements it has, and how many ran.
type coverage struct {
	statements, hit map[function]int
	blocks          map[string]block
}

// A block is statements that run together.
type block struct {
	in    function
	count int
	ran   bool
}

// covered runs the program and reads what of it ran.
func covered(ctx context.Context, program, dir string, paths []string) (coverage, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return coverage{}, err
	}
	cmd := exec.CommandContext(ctx, program, paths...)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+dir)
	if err := execute(cmd); err != nil {
		return coverage{}, err
	}
	profile := filepath.Join(dir, "profile")
	if err := execute(exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i", dir, "-o", profile)); err != nil {
		return coverage{}, err
	}
	profiles, err := cover.ParseProfiles(profile)
	if err != nil {
		return coverage{}, err
	}
	out := coverage{blocks: map[string]block{}}
	for _, p := range profiles {
		file := strings.TrimPrefix(p.FileName, module)
		if strings.HasPrefix(file, "tools/measure/") { // nothing is counted where the program is not
			continue
		}
		in, err := functionsOf(file)
		if err != nil {
			return coverage{}, err
		}
		for _, b := range p.Blocks {
			i := slices.IndexFunc(in, func(f function) bool { return f.line <= b.StartLine && b.EndLine <= f.last })
			if i < 0 {
				continue // a variable's function
			}
			out.blocks[fmt.Sprintf("%s:%d.%d", file, b.StartLine, b.StartCol)] = block{in[i], b.NumStmt, b.Count > 0}
		}
	}
	out.count()
	return out, nil
}

func (c *coverage) count() {
	c.statements, c.hit = map[function]int{}, map[function]int{}
	for _, b := range c.blocks {
		c.statements[b.in] += b.count
		if b.ran {
			c.hit[b.in] += b.count
		}
	}
}

// and is what ran in one run or the other.
func (c coverage) and(d coverage) coverage {
	out := coverage{blocks: maps.Clone(c.blocks)}
	for at, b := range d.blocks {
		b.ran = b.ran || out.blocks[at].ran
		out.blocks[at] = b
	}
	out.count()
	return out
}

// all are the functions in the order of their places.
func (c coverage) all() []function {
	return slices.SortedFunc(maps.Keys(c.statements), func(f, g function) int {
		return cmp.Or(strings.Compare(f.file, g.file), f.line-g.line)
	})
}

// functions are those of a folder that ran.
func (c coverage) functions(folder string) []function {
	return slices.DeleteFunc(c.all(), func(f function) bool { return c.hit[f] == 0 || !strings.HasPrefix(f.file, folder) })
}

// distinct is in how many places, as of tells them, functions stand.
func distinct(fs []function, of func(function) string) int {
	out := map[string]bool{}
	for _, f := range fs {
		out[of(f)] = true
	}
	return len(out)
}

// functionsOf are the functions of a file.
func functionsOf(file string) (out []function, err error) {
	places := token.NewFileSet()
	parsed, err := parser.ParseFile(places, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			out = append(out, function{file, nameOf(f), places.Position(f.Pos()).Line, places.Position(f.End()).Line})
		}
	}
	return out, nil
}

// nameOf is a function's name, with the type that it is a method of.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// size is how large a folder is, without tests, and without the folders in it unless it is whole.
func size(folder string, whole bool) (lines, files int, err error) {
	err = filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != folder && !whole:
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		lines, files = lines+bytes.Count(text, []byte("\n")), files+1
		return err
	})
	return lines, files, err
}

// writeReach writes the table: a room in a line, and all of translate and cel.
func writeReach(w *bytes.Buffer, sets []set, runs []coverage) error {
	last := runs[len(runs)-1]
	fmt.Fprint(w, "| room | lines | files | functions | statements |")
	for i, s := range sets {
		name := s.name
		if i > 0 {
			name = "and " + name
		}
		fmt.Fprintf(w, " %s |", name)
	}
	fmt.Fprintf(w, " functions without any of the first three |\n|%s\n", strings.Repeat("---|", 6+len(sets)))
	rooms := map[string][]function{}
	for _, f := range last.all() {
		rooms[f.room()] = append(rooms[f.room()], f)
		whole := strings.SplitN(f.file, "/", 2)[0] + ", whole"
		rooms[whole] = append(rooms[whole], f)
	}
	for _, room := range slices.Sorted(maps.Keys(rooms)) {
		folder, whole := strings.CutSuffix(room, ", whole")
		if whole && folder == "cel" {
			continue
		}
		lines, files, err := size(folder, whole)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d |", room, lines, files, len(rooms[room]), sum(rooms[room], last.statements))
		for _, run := range runs {
			fmt.Fprintf(w, " %d %% |", 100*sum(rooms[room], run.hit)/max(1, sum(rooms[room], last.statements)))
		}
		real := runs[len(runs)-2]
		idle := slices.DeleteFunc(slices.Clone(rooms[room]), func(f function) bool { return real.hit[f] > 0 })
		fmt.Fprintf(w, " %d |\n", len(idle))
	}
	return nil
}

func sum(fs []function, of map[function]int) (n int) {
	for _, f := range fs {
		n += of[f]
	}
	return n
}
