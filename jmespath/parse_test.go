package jmespath

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/kvap/kvap/diag"
)

// shape prints a tree as nested lists, so that its structure shows.
func shape(e *Expr) string {
	names := [...]string{"@", "field", "sub", "index", "slice", "flatten", "project", "values", "filter", "list", "hash",
		"pipe", "or", "and", "not", "compare", "literal", "raw", "call", "ref"}
	parts := []string{names[e.Op]}
	switch e.Op {
	case Current:
		return "@"
	case Field:
		return e.fieldText()
	case Literal:
		return jsonText(e.Value)
	case RawString:
		return "'" + e.Text.Text + "'"
	case Compare:
		parts[0] = e.Comparator.String()
	case Call:
		parts[0] = e.Name + "()"
	case Index:
		parts[0] = "[" + jsonText(e.Num) + "]"
	case Slice:
		parts[0] = e.sliceText()
	case MultiHash:
		parts = append(parts, strings.Join(e.Keys, ","))
	default:
	}
	for _, arg := range e.Args {
		parts = append(parts, shape(arg))
	}
	return "(" + strings.Join(parts, " ") + ")"
}

type shapeRow struct{ text, want, printed string }

func shapes() []shapeRow {
	return []shapeRow{
		{"a", "a", ""},
		{"@", "@", ""},
		{`"a-b"`, `"a-b"`, ""},
		{`"ab"`, `ab`, "ab"},
		{`"a\"b\u00e9"`, `"a\"bé"`, `"a\"bé"`},
		{"a.b.c", "(sub (sub a b) c)", ""},
		{"a.b[0].c", "(sub (sub a ([0] b)) c)", ""},
		{"(a.b)[0]", "([0] (sub a b))", ""},
		{"a[-1]", "([-1] a)", ""},
		{"[0]", "([0] @)", ""},
		{"a[01]", "([1] a)", "a[1]"},
		{"a[1:3]", "(project ([1:3] a) @)", ""},
		{"a[::-1].b", "(project ([::-1] a) b)", ""},
		{"a.b[*].c.d", "(sub a (project b (sub c d)))", ""},
		{"(a[*]).b", "(sub (project a @) b)", ""},
		{"a.b[].c", "(project (flatten (sub a b)) c)", ""},
		{"a[].b[]", "(project (flatten (project (flatten a) b)) @)", ""},
		{"a[][]", "(project (flatten (project (flatten a) @)) @)", ""},
		{"a.b[?c == 'd'].e", `(filter (sub a b) e (== c "d"))`, ""},
		{"a[?b][?c]", "(filter a (filter @ @ c) b)", ""},
		{"a[?b][]", "(project (flatten (filter a @ b)) @)", ""},
		{"x[*].b[?c].d[?e]", "(project x (filter (filter b d c) @ e))", ""},
		{"x[*].b.[c][0]", "(project x ([0] (sub b (list c))))", ""},
		{"*.a.b", "(values @ (sub a b))", ""},
		{"a.*.b.c", "(sub (values a b) c)", ""},
		{"a.*[0]", "(values a ([0] @))", ""},
		{"[*].*", "(project @ (values @ @))", ""},
		{"[a, b.c]", "(list a (sub b c))", ""},
		{"[(*)]", "(list (values @ @))", ""},
		{"[*]", "(project @ @)", ""},
		{"[*, a]", "(list (values @ @) a)", ""},
		{"a.[b, c]", "(sub a (list b c))", ""},
		{"a[*][b].c", "(project a (sub (list b) c))", ""},
		{"a.{x: b, \"y-z\": c}", "(sub a (hash x,y-z b c))", ""},
		{"{a: b c: d}", "(hash a,c b d)", "{a: b, c: d}"},
		{"a || b && c == d | e", "(pipe (or a (and b (== c d))) e)", ""},
		{"(a | b) || c", "(or (pipe a b) c)", ""},
		{"a || (b || c)", "(or a (or b c))", ""},
		{"a < b == c", "(== (< a b) c)", ""},
		{"!a.b", "(sub (not a) b)", ""},
		{"!(a.b)", "(not (sub a b))", ""},
		{"!a[0]", "(not ([0] a))", ""},
		{"(!a)[0]", "([0] (not a))", ""},
		{"!f(a)", "(not (f() a))", ""},
		{"a.f(@, &b.c)", "(sub a (f() @ (ref (sub b c))))", ""},
		{"f(&a || b, c)", "(f() (ref (or a b)) c)", ""},
		{"f()", "(f())", ""},
		{"f(a b,)", "(f() a b)", "f(a, b)"},
		{"let", "let", ""},
		{"`1`", "1", ""},
		{"` {\"a\": [1.5, null, true]} `", `{"a":[1.5,null,true]}`, "`{\"a\":[1.5,null,true]}`"},
		{"`\"a\\`b\"`", "\"a`b\"", "'a`b'"},
		{"`\"x\"`", `"x"`, "'x'"},
		{`'a\b\\c\'d'`, `"a\\b\\\\c'd"`, ""},
		{"`\"end\\\\\"`", `"end\\"`, ""},
		{`''`, `""`, ""},
		{"'{{x}}'", `"{{x}}"`, "`\"{{x}}\"`"},
		{"a\n\t| b\r", "(pipe a b)", "a | b"},
	}
}

func TestParse(t *testing.T) {
	for _, c := range shapes() {
		e, err := Parse(c.text, diag.Pos{})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := shape(e); got != c.want {
			t.Errorf("%s: tree %s, want %s", c.text, got, c.want)
		}
		want := c.printed
		if want == "" {
			want = c.text
		}
		if got := e.String(); got != want {
			t.Errorf("%s prints as %s, want %s", c.text, got, want)
		}
		again, err := Parse(e.String(), diag.Pos{})
		if err != nil {
			t.Errorf("%s prints as %s: %v", c.text, e, err)
		} else if got := shape(again); got != c.want {
			t.Errorf("%s prints as %s, which is %s", c.text, e, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		text, want string
		col        int
	}{
		{"", "empty", 1},
		{"a b", "unexpected b", 3},
		{"a.", "incomplete", 3},
		{"a.b.'c'", "unexpected 'c'", 5},
		{"a.@", "after a dot", 3},
		{"a.[0]", "unexpected 0", 4},
		{"a-b", "double quotes", 2},
		{"a - 1", "subtract()", 3},
		{"a * b", "add()", 1},
		{"a + b", "add()", 3},
		{"a / b", "divide()", 3},
		{"$.a", "'$'", 1},
		{"let $x = a in $x", "'$'", 5},
		{"a = b", "equality is ==", 3},
		{"`foo`", "write a string as '...'", 1},
		{"`1", "no closing", 1},
		{"'a", "no closing", 1},
		{`'a\'`, "no closing", 1},
		{`"a`, "no closing", 1},
		{`"\x"`, "JSON string", 2},
		{`"f"(a)`, "cannot be called", 1},
		{"@(a)", "cannot be called", 1},
		{"&a", "argument of a function", 2},
		{"f(a || &b)", "argument of a function", 9},
		{"a[99999999999999999999]", "too large", 3},
		{"a[1", "incomplete", 4},
		{"a[b]", "unexpected b", 3},
		{"{@: a}", "no key", 2},
		{"{}", "unexpected }", 2},
		{"[ ]", "unexpected ]", 3},
		{"a[0:1:2:3]", "unexpected :", 8},
		{"é", "unexpected", 1},
		{"\xff", "UTF-8", 1},
		{"a == ", "incomplete", 6},
		{strings.Repeat("a.", maxTokens) + "a", "tokens", maxTokens + maxTokens/2 + 1 - maxTokens/2},
	} {
		e, err := Parse(c.text, diag.Pos{Line: 3, Col: 1})
		if err == nil {
			t.Errorf("%.40s: no error but %v", c.text, e)
			continue
		}
		if err.Code != diag.BadExpression || !strings.Contains(err.Message, c.want) {
			t.Errorf("%.40s: %v, want %q", c.text, err, c.want)
		}
		if len(c.text) < 100 && c.col > 0 && err.Col != c.col {
			t.Errorf("%.40s: column %d, want %d: %v", c.text, err.Col, c.col, err)
		}
	}
}

func TestPositions(t *testing.T) {
	e, err := Parse("a.b[?c == 'd'] |\n  f([0])", diag.Pos{File: "p.yaml", Line: 7, Col: 11, Path: "spec"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	Walk(e, func(e *Expr) bool {
		got[e.String()] = e.Pos.String()
		return true
	})
	want := map[string]string{
		e.String():       "p.yaml:7:11",
		"a.b[?c == 'd']": "p.yaml:7:11",
		"a.b":            "p.yaml:7:11",
		"a":              "p.yaml:7:11",
		"b":              "p.yaml:7:13",
		"c == 'd'":       "p.yaml:7:16",
		"c":              "p.yaml:7:16",
		"'d'":            "p.yaml:7:21",
		"f([0])":         "p.yaml:8:3",
		"[0]":            "p.yaml:8:3",
		"@":              "p.yaml:8:3",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzPrint holds the law that what is printed parses to the same tree.
func FuzzPrint(f *testing.F) {
	for _, c := range shapes() {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text, diag.Pos{})
		if err != nil {
			return
		}
		again, err := Parse(e.String(), diag.Pos{})
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, e, err)
		}
		if d := cmp.Diff(e, again, cmpopts.IgnoreTypes(diag.Pos{})); d != "" {
			t.Fatalf("%q prints as %q:\n%s", text, e, d)
		}
	})
}

// TestCorpus reads the public policies, where they are at hand.
func TestCorpus(t *testing.T) {
	files, _ := filepath.Glob("../../shared/corpus/policies/*/*/policy.yaml")
	if len(files) == 0 {
		t.Skip("no corpus")
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewDecoder(strings.NewReader(string(text)))
		for {
			var n yaml.Node
			if decoder.Decode(&n) != nil {
				break
			}
			found += corpusNode(t, file, &n)
		}
	}
	if found < 100 {
		t.Errorf("only %d variables", found)
	}
}

func corpusNode(t *testing.T, file string, n *yaml.Node) (found int) {
	if n.Kind == yaml.ScalarNode {
		tmpl, err := ParseTemplate(n.Value, diag.Pos{File: file, Line: n.Line, Col: n.Column})
		if err != nil {
			t.Error(err)
			return 0
		}
		for _, d := range tmpl.Check() {
			t.Error(d)
		}
		tmpl.Walk(func(e *Expr) bool {
			found++
			if e.Op == ExpRef {
				return true
			}
			again, err := ParseTemplate("{{ "+e.String()+" }}", e.Pos)
			if err != nil {
				t.Error(err)
			} else if got := again.Single().Expr.String(); got != e.String() {
				t.Errorf("%s prints again as %s", e, got)
			}
			return true
		})
	}
	for _, child := range n.Content {
		found += corpusNode(t, file, child)
	}
	return found
}
