package jmespath

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
)

// templateShape shows how a template was split: [text], {variable}, and
// $(operator,path).
func templateShape(t *Template) string {
	var b strings.Builder
	for _, p := range t.Parts {
		switch {
		case p.Ref != nil:
			b.WriteString("$(" + p.Ref.Operator + "," + p.Ref.Path + ")")
		case p.Var == nil:
			b.WriteString("[" + p.Text + "]")
		case p.Var.Body != nil:
			b.WriteString("{body " + templateShape(p.Var.Body) + "}")
		default:
			b.WriteString("{" + exprShape(p.Var.Expr) + "}")
		}
		if p.Var != nil && p.Var.Shallow {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// exprShape is the text of an expression, with the shapes of the templates in it.
func exprShape(e *Expr) string {
	text := e.String()
	Walk(e, func(e *Expr) bool {
		for _, t := range []*Template{e.Text, e.Dynamic} {
			if t != nil {
				text += " " + templateShape(t)
			}
		}
		return true
	})
	return text
}

type templateRow struct{ text, want string }

func templateRows() []templateRow {
	return []templateRow{
		{"", ""},
		{"plain { } }} text", "[plain { } }} text]"},
		{"{{a}}", "{a}"},
		{"{{ a.b }}", "{a.b}"},
		{" {{a}}", "[ ]{a}"},
		{"x {{a}}{{b}} y", "[x ]{a}{b}[ y]"},
		{"{{- a }}", "{a}-"},
		{`\{{a}}`, "[{{a}}]"},
		{`\{{a}} {{b}}`, "[{{a}} ]{b}"},
		{`\{{{a}}}`, `[\{]{a}[}]`},
		{"{{{a: b}}}", "{{a: b}}"},
		{"{{ {a: b}.a }}", "{{a: b}.a}"},
		{"{{ a || `{\"x\": 1}` }}", "{a || `{\"x\":1}`}"},
		// Braces in braces are no variable at all.
		{"{{ a || `{\"x\": {}}` }}", "[{{ a || `{\"x\": {}}` }}]"},
		{"{{a}", "[{{a}]"},
		{"{{a", "[{{a]"},
		{"{{ {{a}} }}", "{body {a}}"},
		{"{{ a.{{b}} }}", "{body [a.]{b}}"},
		{"{{ a.{{ b.{{c}} }}.d }}", "{body [a.]{body [b.]{c}}[.d]}"},
		{"{{ a.b }} {{ f('{{c}}') }}", "{a.b}[ ]{f('{{c}}') {c}}"},
		{"{{ f('x-{{c}}-\\'y\\'') }}", `{f('x-{{c}}-\'y\'') [x-]{c}[-'y']}`},
		{`{{ a."x{{c}}\n" }}`, `{a."x{{c}}\n" [x]{c}` + "[\n]}"},
		{"{{ f('{{ a || '0' }}') }}", "{f('{{ a || '0' }}') {a || '0'}}"},
		{"{{ a || `\"{{b}}\"` }}", "{body [a || `\"]{b}[\"`]}"},
		{"{{ f('{{a}}', {{b}}) }}", "{body [f(']{a}[', ]{b}[)]}"},
		{"{{ '{{ f('{{a}}') }}' }}", "{'{{ f('{{a}}') }}' {f('{{a}}') {a}} {a}}"},
		{"$(./../x)", "$(,./../x)"},
		{"<=$(./../x)Mi", "[<=]$(,./../x)[Mi]"},
		{"$(<=/a/b) and $(!c)", "$(<=,/a/b)[ and ]$(!,c)"},
		{`\$(x) \$x \$(`, `[$(x) \$x \$(]`},
		{"$(a)$(b)", "$(,a)$(b)"}, // one reference: it extends as far as it can
		{"$()", "[$()]"},
		{"$(a b)", "[$(a b)]"},
		{"$({{a}})", "$(,{{a}})"},
		{"{{ f('$(a) ') }}", "{f('$(a) ') $(,a)[ ]}"},
		{"{{ a$(b}}) }}", "{body [a]$(,b}})}"},
		{"^foo$", "[^foo$]"},
		{"é{{ a }}é", "[é]{a}[é]"},
	}
}

func TestParseTemplate(t *testing.T) {
	for _, c := range templateRows() {
		tmpl, err := ParseTemplate(c.text, diag.Pos{})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := templateShape(tmpl)
		if got != c.want {
			t.Errorf("%s: split as %s, want %s", c.text, got, c.want)
		}
	}
}

func TestParseTemplateErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{{}}", "p.yaml:3:5: a variable without an expression [KV112]"},
		{"ab {{ a b }}", "p.yaml:3:13: unexpected b in the expression [KV112]"},
		{"ab\n {{ a b }}", "p.yaml:4:7: unexpected b in the expression [KV112]"},
		{"é {{ f('{{ x( }}') }}", "p.yaml:3:18: the expression is incomplete [KV112]"},
		{strings.Repeat("{{a.", 100) + "a" + strings.Repeat("}}", 100), "p.yaml:3:273: variables nest deeper than 32 levels [KV112]"},
	} {
		_, err := ParseTemplate(c.text, diag.Pos{File: "p.yaml", Line: 3, Col: 5})
		if err == nil {
			t.Errorf("%s: no error", c.text)
		} else if err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestTemplateQuestions(t *testing.T) {
	for _, c := range []struct {
		text                           string
		constant                       string
		isConstant, single, vars, refs bool
	}{
		{text: "", isConstant: true},
		{text: `a \{{b}}`, constant: "a {{b}}", isConstant: true},
		{text: "{{b}}", single: true, vars: true},
		{text: "{{b.{{c}}}}", single: true, vars: true},
		{text: "{{b}} ", vars: true},
		{text: "$(b)", refs: true},
		{text: "{{f('$(b) ')}}", single: true, vars: true, refs: true},
		{text: "{{f({{a}}, '$(b) ')}}", single: true, vars: true, refs: true},
	} {
		tmpl, err := ParseTemplate(c.text, diag.Pos{})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		text, ok := tmpl.Constant()
		if text != c.constant || ok != c.isConstant {
			t.Errorf("%s: Constant is %q, %t", c.text, text, ok)
		}
		if (tmpl.Single() != nil) != c.single || tmpl.HasVars() != c.vars || tmpl.HasRefs() != c.refs {
			t.Errorf("%s: Single %v, HasVars %t, HasRefs %t", c.text, tmpl.Single(), tmpl.HasVars(), tmpl.HasRefs())
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"length(a)", ""},
		{"time_now('x', `1`)", ""},
		{"not_null(a, b, c)", ""},
		{"sort_by(a, &b)", ""},
		{"longness(a)", "there is no function longness()"},
		{"a.b[?length(c, d)]", "length() has 2 arguments and takes 1"},
		{"merge()", "merge() has 0 arguments and takes at least 1"},
		{"sort_by(a, b)", "argument 2 of sort_by() must be: &expression"},
		{"length(&b)", "argument 1 of length() must be: string or list or object"},
		{"join('{{ nope() }}', a)", "there is no function nope()"},
	} {
		tmpl, err := ParseTemplate("{{"+c.text+"}}", diag.Pos{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, d := range tmpl.Check() {
			got += d.Message
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestFunctions(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Functions() {
		name := f.String()
		if name == "" || seen[name] || FuncNamed(name) != f {
			t.Errorf("%q is listed twice, or has no name", name)
		}
		seen[name] = true
		if s := f.Signature(); (len(s.Params) == 0) != s.Lax || s.Result == 0 {
			t.Errorf("%s: only lax functions have no parameters", name)
		}
	}
	if len(seen) != 25+51 {
		t.Errorf("%d functions", len(seen))
	}
}

// FuzzTemplate holds the laws that splitting never panics, loses no text, and
// that every expression found prints as one that is found again.
func FuzzTemplate(f *testing.F) {
	for _, c := range templateRows() {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := ParseTemplate(text, diag.Pos{})
		if err != nil {
			return
		}
		tmpl.Check()
		if plain := !strings.Contains(text, "{{") && !strings.Contains(text, "$("); plain {
			if got, ok := tmpl.Constant(); !ok || got != text {
				t.Fatalf("%q: constant %q, %t", text, got, ok)
			}
		}
		for _, p := range tmpl.Parts {
			if p.Var == nil || p.Var.Expr == nil {
				continue
			}
			again, err := ParseTemplate("{{ "+p.Var.Expr.String()+" }}", diag.Pos{})
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if again.Single() == nil || again.Single().Expr.String() != p.Var.Expr.String() {
				t.Fatalf("%q: %s is found again as %s", text, p.Var.Expr, templateShape(again))
			}
		}
	})
}
