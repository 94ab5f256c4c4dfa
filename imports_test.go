// Package kvap_test holds the laws that span packages: who may import whom, and
// what a compiler package must not do.
package kvap_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/kvap/kvap"

// everything is the entry of those who stand above all rooms.
const everything = "everything"

// mayImport is policy, not a description: relax it in review, never to fix a
// build. It is the table of docs/architecture.md; a package that is not listed
// fails the test. Tests are free to import what they need.
func mayImport() map[string][]string {
	law := map[string][]string{}
	for line := range strings.Lines(importLaw) {
		room, allowed, _ := strings.Cut(line, ":")
		law[room] = strings.Fields(allowed)
	}
	return law
}

// importLaw has a line for each room. The interpreter, which is the second opinion,
// shares no code with what it judges; the tests of test/e2e stand above all.
const importLaw = `diag:
diag/internal/gencodes:
internal/budget: policy
cel: diag
jmespath: diag
schema: diag
policy: diag jmespath
policy/validity: diag internal/budget interp policy schema
vap: cel diag
vap/apiserver: internal/budget vap mutating cel schema
mutating: vap cel diag
generating: vap diag
celpolicy: compile vap mutating generating policy schema cel diag
translate: translate/internal/api translate/internal/native translate/internal/read translate/internal/match translate/internal/celrule translate/internal/fields translate/internal/pack translate/internal/rule translate/internal/mutate translate/internal/generate diag policy vap
translate/internal/api: translate/internal/pack cel diag internal/budget mutating generating policy schema vap
translate/internal/anchor:
translate/internal/partial: cel
translate/internal/scalar:
translate/internal/native: translate/internal/scalar cel diag policy schema vap
translate/internal/read: translate/internal/api translate/internal/anchor translate/internal/partial translate/internal/scalar translate/internal/native cel diag jmespath policy schema vap
translate/internal/compare: translate/internal/partial translate/internal/scalar translate/internal/native translate/internal/read cel diag jmespath policy schema
translate/internal/query: translate/internal/scalar translate/internal/native translate/internal/read translate/internal/compare cel diag internal/budget jmespath policy schema
translate/internal/condition: translate/internal/partial translate/internal/scalar translate/internal/native translate/internal/read translate/internal/compare translate/internal/query cel diag jmespath policy schema
translate/internal/match: translate/internal/api translate/internal/scalar translate/internal/native translate/internal/read translate/internal/query translate/internal/condition translate/internal/pack cel diag policy schema vap
translate/internal/pattern: translate/internal/partial translate/internal/anchor translate/internal/scalar translate/internal/native translate/internal/read translate/internal/compare translate/internal/query cel diag jmespath policy schema
translate/internal/podsec: translate/internal/partial translate/internal/scalar translate/internal/native translate/internal/read translate/internal/compare translate/internal/query translate/internal/match translate/internal/pack cel diag policy schema
translate/internal/celrule: translate/internal/partial translate/internal/api translate/internal/native translate/internal/read translate/internal/query translate/internal/match translate/internal/pack cel diag policy schema vap
translate/internal/fields: translate/internal/anchor translate/internal/scalar translate/internal/native cel diag internal/budget jmespath policy schema
translate/internal/pack: translate/internal/partial translate/internal/native cel diag policy schema vap
translate/internal/rule: translate/internal/api translate/internal/partial translate/internal/scalar translate/internal/native translate/internal/read translate/internal/query translate/internal/condition translate/internal/match translate/internal/pattern translate/internal/podsec translate/internal/celrule translate/internal/pack cel diag jmespath policy schema vap
translate/internal/mutate: translate/internal/api translate/internal/anchor translate/internal/partial translate/internal/scalar translate/internal/native translate/internal/read translate/internal/compare translate/internal/query translate/internal/condition translate/internal/match translate/internal/pattern translate/internal/celrule translate/internal/pack translate/internal/rule cel diag jmespath mutating policy schema vap
translate/internal/generate: translate/internal/api translate/internal/partial translate/internal/scalar translate/internal/native translate/internal/read translate/internal/query translate/internal/condition translate/internal/match translate/internal/celrule translate/internal/pack translate/internal/rule translate/internal/mutate cel diag generating policy schema vap
compile: internal/budget internal/cores translate vap vap/apiserver mutating generating policy cel diag
check: internal/budget internal/cores internal/defaulting mutating vap vap/apiserver policy schema cel diag
interp: internal/budget interp/internal/cellib interp/internal/expr interp/internal/jsonpatch interp/internal/merge interp/internal/datum interp/internal/wildcard policy jmespath diag
interp/internal/expr: internal/budget interp/internal/datum interp/internal/wildcard jmespath diag
interp/internal/datum:
interp/internal/jsonpatch: interp/internal/datum
interp/internal/merge:
interp/internal/wildcard:
interp/internal/cellib: internal/budget
verify: compile internal/defaulting internal/judge policy cel jmespath translate vap vap/apiserver interp schema diag
diff: cel diag internal/cores internal/defaulting internal/judge internal/textdiff interp policy schema vap vap/apiserver verify
api/v1alpha1:
deploy/crds:
cmd/kvap/internal/migrate: api/v1alpha1 compile policy report report/doc diag
cmd/kvap/internal/migrate/infiles: api/v1alpha1 compile controller cmd/kvap/internal/convert internal/exit cmd/kvap/internal/folder internal/input cmd/kvap/internal/migrate policy report translate
cmd/kvap/internal/migrate/planning: api/v1alpha1 compile diag internal/cluster cmd/kvap/internal/convert internal/defaulting internal/exit internal/input internal/manifest cmd/kvap/internal/migrate cmd/kvap/internal/migrate/live report controller/scan vap
cmd/kvap/internal/migrate/recording: internal/cluster internal/exit cmd/kvap/internal/migrate/record policy controller/webhook/certs controller/webhook/endpoint controller/webhook/registration controller/webhook/world
cmd/kvap/internal/migrate/live: api/v1alpha1 controller/cleanup compile controller diag internal/cluster internal/judge cmd/kvap/internal/migrate policy report translate controller/webhook/registration controller/webhook/world
cmd/kvap/internal/migrate/compare: api/v1alpha1 controller/background/live compile controller diag internal/cluster internal/exit internal/judge internal/manifest interp cmd/kvap/internal/migrate cmd/kvap/internal/migrate/evidence cmd/kvap/internal/migrate/live policy report report/doc controller/scan schema translate vap/apiserver verify
cmd/kvap/internal/migrate/record:
cmd/kvap/internal/migrate/evidence: controller/audit compile internal/cores internal/judge interp policy report report/doc translate vap vap/apiserver verify
controller: api/v1alpha1 compile translate cel vap vap/apiserver policy schema diag report controller/scan controller/internal/notice
controller/cleanup: api/v1alpha1 interp policy diag controller/internal/notice
controller/webhook: controller/webhook/registration controller/internal/turns interp policy diag
controller/webhook/endpoint: controller/webhook/certs
controller/webhook/registration: cel policy
controller/webhook/shadow: api/v1alpha1 interp policy controller/webhook
controller/webhook/certs:
controller/webhook/world: images internal/proven controller/internal/turns interp controller/webhook/registration
report/doc: diag
report: diag report/doc
controller/audit: api/v1alpha1 diag internal/input vap
controller/background: api/v1alpha1 interp policy
controller/background/live: api/v1alpha1 controller/background interp
controller/scan: compile internal/judge internal/manifest interp policy report schema translate vap/apiserver
cmd/kvap/internal/status: api/v1alpha1 compile translate vap vap/apiserver policy report schema diag
cmd/kvap/internal/status/live: api/v1alpha1 compile controller internal/cluster policy report report/doc schema cmd/kvap/internal/status translate
images:
fixtures:
cmd/kvap: everything
cmd/kvap-controller: controller internal/cluster internal/command internal/exit controller/incluster internal/input report vap
cmd/kvap-dev: everything
test/benchadmission: everything
test/benchadmission/plot:
test/benchwebhook: interp policy controller/webhook controller/webhook/certs
test/benchcluster: everything
test/benchscan: everything
tools/measure:
tools/measure/lower: cel compile policy schema translate
test/conformance: everything
test/controlplane:
internal/cluster: api/v1alpha1 cel internal/exit internal/input schema
internal/judge: internal/defaulting internal/manifest internal/textdiff compile mutating policy translate vap vap/apiserver interp schema diag
internal/defaulting: cel schema
internal/deviation: policy
test/e2e:
test/e2e/check:
test/e2e/status:
test/e2e/scan:
test/e2e/record:
test/e2e/cleanup:
test/e2e/migrate:
test/e2e/kyverno:
test/e2e/replay:
test/e2e/deploy:
test/e2e/background:
test/e2e/controller:
test/e2e/webhook:
test/e2e/attempt: fixtures interp policy
test/e2e/chainsaw:
test/e2e/testcluster: api/v1alpha1 deploy/crds test/controlplane
internal/manifest: diag
internal/cores:
internal/exit:
internal/input: cel diag internal/exit internal/manifest
cmd/kvap/internal/folder: internal/exit internal/input report/doc
controller/incluster: api/v1alpha1 controller/audit controller/background controller/background/live cel controller/cleanup compile controller diag images internal/judge interp policy policy/validity schema translate controller/webhook controller/webhook/certs controller/webhook/endpoint controller/webhook/registration controller/webhook/shadow controller/webhook/world controller/internal/notice controller/scan vap
cmd/kvap/internal/convert: api/v1alpha1 cel celpolicy compile diag internal/exit cmd/kvap/internal/folder internal/input internal/judge internal/manifest interp cmd/kvap/internal/migrate mutating policy policy/validity report report/doc schema translate vap vap/apiserver controller/webhook/registration
cmd/kvap/internal/follow: cel compile diag policy schema translate
cmd/kvap/internal/evaluate: compile diag internal/cluster cmd/kvap/internal/convert internal/cores internal/defaulting internal/exit internal/input internal/judge internal/manifest internal/proven internal/textdiff interp cmd/kvap/internal/migrate/compare report report/doc schema translate vap/apiserver
cmd/kvap/internal/acceptance: diag internal/input policy
cmd/kvap/internal/checking: cel check compile diag internal/cluster cmd/kvap/internal/convert internal/input cmd/kvap/internal/signers policy policy/validity report schema vap
internal/command: diag internal/exit internal/input policy
cmd/kvap/internal/manual:
tools/release:
tools/servers: test/controlplane
tools/snippets:
tools/terminal:
internal/proven: images interp
cmd/kvap/internal/signers: images policy diag
test/testregistry:
internal/textdiff:
controller/internal/turns:
controller/internal/notice: api/v1alpha1
test/standin: policy controller/webhook/registration
test/kyverno: test/controlplane
cmd/kvap/internal/suite: internal/textdiff compile internal/defaulting internal/judge internal/deviation internal/manifest policy translate vap/apiserver interp schema diag
`

// compilers are the packages that take values and return values, so that they
// run in a browser, a test or a controller alike.
func compilers() []string {
	return []string{"diag", "cel", "jmespath", "policy", "schema", "translate", "vap", "vap/apiserver", "mutating", "celpolicy", "compile", "check", "internal/cores", "policy/validity"}
}

// concurrent are the compilers that may start goroutines: their result does not
// depend on which of them is done first, and they leave none behind.
func concurrent() []string { return []string{"internal/cores"} }

// onlyThere names import paths that have one home, by prefix: CEL's own trees
// and printer belong to cel, the JMESPath parser to jmespath, YAML nodes to policy.
func onlyThere() []confined {
	return []confined{
		{"github.com/google/cel-go/common/ast", []string{"cel", "vap/apiserver", "interp/internal/cellib", "internal/budget"}}, // apiserver: of which types fields are read; cellib: for a macro; budget: to count
		{"github.com/google/cel-go/parser", []string{"cel", "internal/budget"}},
		{"github.com/google/cel-go/common/operators", []string{"cel", "vap/apiserver", "internal/budget"}}, // apiserver: where a long expression is cut in parts
		{"github.com/google/cel-go", []string{"cel", "vap/apiserver", "interp", "interp/internal/cellib", "internal/budget"}},
		{"github.com/jmespath-community/go-jmespath", []string{"jmespath", "interp"}},
		{"go.yaml.in/yaml/v3", []string{"policy", "schema"}},
		{"k8s.io/apiserver", []string{"cel", "vap/apiserver", "interp", "controller/webhook", "controller/webhook/registration", "controller/webhook/world", "controller"}},
		{"k8s.io/pod-security-admission", []string{"interp"}},
		{"github.com/sigstore", []string{"images", "test/testregistry"}},
		{"github.com/notaryproject", []string{"images", "test/testregistry"}},
		{"github.com/spf13/cobra", []string{"cmd/kvap", "cmd/kvap-controller", "cmd/kvap-dev"}},
		{"text/template", nil}, // may call any method: a program with one keeps every method that it knows of
		{"html/template", nil},
		{"github.com/kyverno", nil}, // its Go types for these kinds are being deleted upstream
	}
}

type confined struct {
	prefix string
	homes  []string
}

// closed lists what a compiler package must not import: the outside world.
func closed() []string {
	return []string{"os", "net", "net/http", "log", "log/slog", "math/rand", "math/rand/v2", "os/exec", "k8s.io/klog/v2"}
}

// A source is one Go file of the module.
type source struct {
	pkg  string // the folder, from the module's root
	name string // the path, from the module's root
	file *ast.File
	fset *token.FileSet
}

func (s source) at(n ast.Node) string {
	return s.name + ":" + strconv.Itoa(s.fset.Position(n.Pos()).Line)
}

func (s source) imports() map[string]ast.Node {
	m := map[string]ast.Node{}
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		m[p] = i
	}
	return m
}

// sources parses every Go file of the module but the tests and nested modules.
func sources(t *testing.T) []source {
	t.Helper()
	return parsed(t, func(name string) bool {
		return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
	})
}

func parsed(t *testing.T, wanted func(name string) bool) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(p)
		}
		if !wanted(p) {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil || ignored(f) {
			return err
		}
		all = append(all, source{pkg: path.Dir(filepath.ToSlash(p)), name: p, file: f, fset: fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no Go files found: the test runs in the wrong folder")
	}
	return all
}

// ignored tells of a program that go generate runs: it is part of no package.
func ignored(f *ast.File) bool {
	return slices.ContainsFunc(f.Comments, func(g *ast.CommentGroup) bool {
		return g.End() < f.Package && slices.ContainsFunc(g.List, func(c *ast.Comment) bool { return c.Text == "//go:build ignore" })
	})
}

func skipDir(p string) error {
	if p == "." {
		return nil
	}
	base := filepath.Base(p)
	_, err := os.Stat(filepath.Join(p, "go.mod"))
	if err == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	return nil
}

func TestImportLaw(t *testing.T) {
	law := mayImport()
	for _, s := range sources(t) {
		allowed, listed := law[s.pkg]
		if !listed {
			t.Errorf("%s: package %s is not in the import law", s.name, s.pkg)
			continue
		}
		for p, at := range s.imports() {
			room, ours := strings.CutPrefix(p, module+"/")
			if ours && !slices.Contains(allowed, room) && !slices.Contains(allowed, everything) {
				t.Errorf("%s: %s must not import %s", s.at(at), s.pkg, room)
			}
		}
	}
}

// The table of docs/architecture.md has a row for each room, with what it may
// import, in the words of the law.
func TestArchitectureListsEveryRoom(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		room, ok := strings.CutPrefix(cells[0], "| `")
		room, isFolder := strings.CutSuffix(room, "/`")
		if ok && isFolder && len(cells) >= 3 {
			last := strings.TrimSuffix(cells[len(cells)-1], " |")
			rows[room] = strings.Fields(strings.Trim(strings.ReplaceAll(last, ",", ""), "–"))
		}
	}
	law := mayImport()
	exists := map[string]bool{}
	for _, s := range sources(t) {
		exists[s.pkg] = true
	}
	for room, allowed := range law {
		row, told := rows[room]
		slices.Sort(allowed)
		slices.Sort(row)
		if exists[room] && !told {
			t.Errorf("docs/architecture.md has no row for %s/", room)
		}
		if told && !slices.Equal(row, allowed) {
			t.Errorf("%s may import %v, and docs/architecture.md says %v", room, allowed, row)
		}
	}
	for room := range rows {
		if _, lawful := law[room]; !lawful && room != "tools" {
			t.Errorf("docs/architecture.md has a row for %s/, of which the law says nothing", room)
		}
	}
}

func TestConfinedImports(t *testing.T) {
	for _, s := range sources(t) {
		for p, at := range s.imports() {
			for _, c := range onlyThere() {
				free := slices.ContainsFunc([]string{"internal", "cmd/kvap/internal", "test", "tools"}, func(room string) bool { return under(s.pkg, room) })
				if under(p, c.prefix) && !slices.Contains(c.homes, s.pkg) && !free {
					t.Errorf("%s: %s must not import %s, only %v may", s.at(at), s.pkg, p, c.homes)
				}
			}
		}
	}
}

// What users run links no workshop: nothing that downloads, builds or starts Kubernetes, measures
// or releases; and the image's program nothing that is for people at a terminal.
func TestProgramsLinkNoWorkshop(t *testing.T) {
	workshop := []string{"test", "tools"}
	for program, without := range map[string][]string{
		"cmd/kvap":            workshop,
		"cmd/kvap-controller": append([]string{"cmd/kvap", "verify", "diff", "check", "celpolicy"}, workshop...),
	} {
		out, err := exec.Command("go", "list", "-deps", "./"+program).Output()
		if err != nil {
			t.Fatal(err)
		}
		for linked := range strings.Lines(string(out)) {
			room, ours := strings.CutPrefix(strings.TrimSpace(linked), module+"/")
			if ours && slices.ContainsFunc(without, func(p string) bool { return under(room, p) }) {
				t.Errorf("%s links %s", program, room)
			}
		}
	}
}

func under(p, prefix string) bool { return p == prefix || strings.HasPrefix(p, prefix+"/") }

func TestCompilersTakeValuesAndReturnValues(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.Contains(compilers(), s.pkg) && !strings.HasPrefix(s.pkg, "translate/internal/") {
			continue
		}
		for p, at := range s.imports() {
			if slices.Contains(closed(), p) {
				t.Errorf("%s: a compiler package must not import %s", s.at(at), p)
			}
		}
		for _, d := range s.file.Decls {
			checkDecl(t, s, d)
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a compiler package starts no goroutine", s.at(n))
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				switch {
				case ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Since"):
					t.Errorf("%s: a compiler package has no clock", s.at(n))
				case ok && x.Name == "sync" && n.Sel.Name == "WaitGroup" && !slices.Contains(concurrent(), s.pkg):
					t.Errorf("%s: a compiler package starts no goroutine", s.at(n))
				}
			}
			return true
		})
	}
}

func checkDecl(t *testing.T, s source, d ast.Decl) {
	t.Helper()
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.Name == "init" && d.Recv == nil {
			t.Errorf("%s: a compiler package has no init", s.at(d))
		}
	case *ast.GenDecl:
		if d.Tok != token.VAR {
			return
		}
		for _, spec := range d.Specs {
			v := spec.(*ast.ValueSpec)
			if !constantInEffect(d, v) {
				t.Errorf("%s: a compiler package has no package-level variable such as %s; make it a function or a switch", s.at(v), v.Names[0].Name)
			}
		}
	}
}

// constantInEffect tells whether a package-level variable can only ever have one
// value: a blank interface assertion, an embedded file, the result of an immutable call.
func constantInEffect(d *ast.GenDecl, v *ast.ValueSpec) bool {
	if v.Names[0].Name == "_" {
		return true
	}
	for _, doc := range []*ast.CommentGroup{d.Doc, v.Doc} {
		if doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
			return true
		}
	}
	if len(v.Values) != 1 {
		return false
	}
	call, ok := v.Values[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := f.X.(*ast.Ident)
	return ok && slices.Contains(immutable(), x.Name+"."+f.Sel.Name)
}

// immutable lists the calls whose results nobody can change afterwards.
func immutable() []string {
	return []string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer"}
}

// go-cmp calls methods that it finds by reflection: where a program has it, the linker
// keeps every method of every type. So only tests of small programs compare with it.
func TestLargeTestsDoNotCompareByReflection(t *testing.T) {
	small := []string{"diag", "diag/internal/gencodes", "jmespath", "policy", "report", "report/doc", "internal/manifest",
		"interp/internal/expr", "interp/internal/jsonpatch", "interp/internal/merge"}
	for _, s := range parsed(t, func(name string) bool { return strings.HasSuffix(name, ".go") }) {
		if at, ok := s.imports()["github.com/google/go-cmp/cmp"]; ok && !slices.Contains(small, s.pkg) {
			t.Errorf("%s: %s compares with go-cmp; textdiff.Values does too", s.at(at), s.pkg)
		}
	}
}

// A package says in doc.go what comes in and goes out, what must hold, what it
// does not do and where to start reading.
func TestEveryPackageHasADoc(t *testing.T) {
	documented := map[string]bool{}
	all := sources(t)
	for _, s := range all {
		if filepath.Base(s.name) == "doc.go" && s.file.Doc != nil {
			documented[s.pkg] = true
		}
	}
	for _, s := range all {
		if !documented[s.pkg] && !strings.Contains(s.pkg, "internal/") {
			documented[s.pkg] = true // say it once
			t.Errorf("%s has no doc.go with a package comment", s.pkg)
		}
	}
}

// A file that a package comment names, such as the one to start at, is there.
func TestPackageCommentsNameFilesThatAreThere(t *testing.T) {
	named := regexp.MustCompile(`[\w/]+\.go\b`)
	for _, s := range sources(t) {
		if s.file.Doc == nil {
			continue
		}
		for _, name := range named.FindAllString(s.file.Doc.Text(), -1) {
			_, beside := os.Stat(filepath.Join(filepath.Dir(s.name), name))
			if _, err := os.Stat(name); err != nil && beside != nil {
				t.Errorf("%s: there is no %s", s.name, name)
			}
		}
	}
}

// A file has at most 500 lines, so that it can be read at one go. Tables and what is
// generated have more.
func TestFilesCanBeRead(t *testing.T) {
	for _, s := range sources(t) {
		tables := []string{"diag/codes.go", "diag/explain.go"}
		if ast.IsGenerated(s.file) || slices.Contains(tables, filepath.ToSlash(s.name)) {
			continue
		}
		if lines := s.fset.File(s.file.FileStart).LineCount(); lines > 500 {
			t.Errorf("%s has %d lines; split it by what it is about", s.name, lines)
		}
	}
}

// What one must hold in mind of translate, the controller and background work is bounded: the
// files of a room, and the methods of a type.
func TestRoomsAreSmall(t *testing.T) {
	files, methods := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if !under(s.pkg, "translate") && s.pkg != "controller" && s.pkg != "controller/background" {
			continue
		}
		files[s.pkg]++
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[s.pkg+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	if files["translate/internal/read"] == 0 || methods["translate/internal/read.Lowering"] == 0 {
		t.Fatal("nothing was counted")
	}
	for room, n := range files {
		if n > 40 {
			t.Errorf("%s has %d files; a room has at most 40", room, n)
		}
	}
	for of, n := range methods {
		if n > 60 {
			t.Errorf("%s has %d methods; a type has at most 60", of, n)
		}
	}
}

// A walk has no modes: a construct that changes the environment goes on with a copy of it
// (read.Lowering.Inside).
func TestNothingIsSavedAndRestored(t *testing.T) {
	for _, s := range sources(t) {
		if !under(s.pkg, "translate") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			d, ok := n.(*ast.DeferStmt)
			if !ok {
				return true
			}
			ast.Inspect(d, func(n ast.Node) bool {
				a, ok := n.(*ast.AssignStmt)
				if !ok {
					return true
				}
				if f, isField := a.Lhs[0].(*ast.SelectorExpr); isField {
					t.Errorf("%s: %s is restored when the function returns; go on with l.Inside() in place of that", s.at(a), f.Sel.Name)
				}
				return true
			})
			return true
		})
	}
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// An expression that errs on purpose is made in one place.
func TestOnePlaceMakesErrors(t *testing.T) {
	made := 0
	for _, s := range sources(t) {
		if !under(s.pkg, "translate") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || len(c.Args) != 2 || !isCall(c.Args[1], "Map") {
				return true
			}
			if f, ok := c.Args[0].(*ast.SelectorExpr); !ok || f.Sel.Name != "FuncDyn" {
				return true
			}
			made++
			if s.pkg != "translate/internal/partial" {
				t.Errorf("%s: only partial makes an expression that errs", s.at(c))
			}
			return true
		})
	}
	if made != 1 {
		t.Errorf("%d places make an expression that errs", made)
	}
}

func isCall(e ast.Expr, name string) bool {
	c, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && f.Sel.Name == name && len(c.Args) == 0
}
