package expr

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// Where a text is read as an expression, or as something else with a structure, after
// its variables were filled in, what a user wrote may be a value in it, or a name, and
// not more of the structure (deviation 5). So the text is read a second time with marks
// in the place of such values, and has to have the same structure.

// A Filled is a template with its variables filled in.
type Filled struct {
	Text  string
	Parts []FilledPart
}

// A FilledPart is a part of the text, and where it comes from.
type FilledPart struct {
	Text string
	From Provenance
}

// wild tells that a part is what a user wrote, and could be more than a name or a number.
func (p FilledPart) wild() bool { return p.From.Origin == OfRequest && !isTame(p.Text) }

// From is where the text comes from.
func (f Filled) From() (s Provenance) {
	if len(f.Parts) == 1 {
		return f.Parts[0].From
	}
	for _, p := range f.Parts {
		s.Origin = max(s.Origin, p.From.Origin)
	}
	return s
}

// Fill fills in the variables of a template as text.
func Fill(ctx context.Context, t *jmespath.Template, s Scope, around Surroundings) (Filled, error) {
	ev := newEvaluator(ctx, scopeValue(s), around)
	defer ev.settle()
	return ev.fill(t)
}

func (ev *evaluator) fill(t *jmespath.Template) (Filled, error) {
	var f Filled
	size := 0
	for _, p := range t.Parts {
		part := FilledPart{Text: p.Text}
		switch {
		case p.Ref != nil:
			return f, fmt.Errorf("the reference $(%s%s) cannot be resolved here", p.Ref.Operator, p.Ref.Path)
		case p.Var != nil:
			var err error
			if part.Text, part.From, err = ev.embedded(p.Var); err != nil {
				return f, err
			}
		}
		if size += len(part.Text); size > maxTextSize {
			return f, tooLong()
		}
		f.Parts = append(f.Parts, part)
	}
	f.Text = f.with(func(_ int, text string) string { return text })
	return f, nil
}

// WholeText is a text that is nothing but the value of a variable.
func WholeText(text string, from Provenance) Filled {
	return Filled{Text: text, Parts: []FilledPart{{text, from}}}
}

// with is the text with something else in the place of each wild part.
func (f Filled) with(replace func(i int, text string) string) string {
	var b strings.Builder
	for i, p := range f.Parts {
		if p.wild() {
			b.WriteString(replace(i, p.Text))
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func mark(i int) string { return "kvapMark" + strconv.Itoa(i) + "z" }

// Marked is the text with marks in the place of what users wrote; ok is false where
// there is nothing of that kind.
func (f Filled) Marked() (text string, ok bool) {
	ok = slices.ContainsFunc(f.Parts, FilledPart.wild)
	return f.with(func(i int, _ string) string { return mark(i) }), ok
}

// Unmarked is a text with values in the place of their marks.
func (f Filled) Unmarked(text string) string {
	for i, p := range f.Parts {
		if p.wild() {
			text = strings.ReplaceAll(text, mark(i), p.Text)
		}
	}
	return text
}

// Expression reads the text as an expression.
func (f Filled) Expression(pos diag.Pos) (*jmespath.Expr, *diag.Diagnostic, error) {
	e, bad := jmespath.Parse(strings.TrimSpace(f.Text), pos)
	if bad != nil {
		return nil, bad, nil
	}
	if _, wild := f.Marked(); !wild {
		return e, nil, nil
	}
	for _, quote := range []string{"", `"`} {
		marked, bad := jmespath.Parse(strings.TrimSpace(f.with(func(i int, _ string) string { return quote + mark(i) + quote })), pos)
		if bad == nil && sameShape(e, marked) {
			return e, nil, nil
		}
	}
	return nil, nil, fmt.Errorf("the value of a variable would be a part of the expression, and not a name or a text in it")
}

// sameShape tells that two expressions differ in names, texts and numbers only.
func sameShape(a, b *jmespath.Expr) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Op == b.Op && a.Func == b.Func && a.Comparator == b.Comparator && len(a.Keys) == len(b.Keys) &&
		(a.Text == nil || b.Text == nil || len(a.Text.Parts) == len(b.Text.Parts)) && slices.EqualFunc(a.Args, b.Args, sameShape)
}

// isTame tells of a text that is a number, or a name, or names with dots between.
func isTame(text string) bool {
	if _, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "xX_") {
		return true
	}
	for name := range strings.SplitSeq(text, ".") {
		if name == "" || '0' <= name[0] && name[0] <= '9' || strings.ContainsFunc(name, isNoWord) {
			return false
		}
	}
	return true
}

func isNoWord(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}
