package query

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Template lowers a string of the source.
func Template(l *read.Lowering, t *jmespath.Template) read.Operand {
	return TemplateOf(l, t, func(v *jmespath.Variable) read.Operand { return Variable(l, v) })
}

// TemplateOf is template, given what a variable is.
func TemplateOf(l *read.Lowering, t *jmespath.Template, variable func(*jmespath.Variable) read.Operand) read.Operand {
	if s, ok := t.Constant(); ok {
		return read.LitOf(s)
	}
	if v := t.Single(); v != nil {
		return variable(v)
	}
	out := read.LitOf("")
	for _, part := range t.Parts {
		switch {
		case part.Ref != nil:
			panic(l.Unsupported("a reference $(...)"))
		case part.Var != nil:
			out = join(l, out, variable(part.Var))
		default:
			out = join(l, out, read.LitOf(part.Text))
		}
	}
	return out
}

// join is the text of a and b.
func join(l *read.Lowering, a, b read.Operand) read.Operand {
	return read.From(func(a read.Operand) read.Operand {
		return read.From(func(b read.Operand) read.Operand { return joined(l, a, b) }, b)
	}, a)
}

func joined(l *read.Lowering, a, b read.Operand) read.Operand {
	if read.Multiply(a, b) {
		a, b = oneText(l, a), oneText(l, b)
	}
	if b.Form == read.ChoiceForm {
		return read.InEach(b, func(b read.Operand) read.Operand { return join(l, a, b) })
	}
	if a.Form == read.ChoiceForm {
		return read.InEach(a, func(a read.Operand) read.Operand { return join(l, a, b) })
	}
	if a.Form == read.LitForm && b.Form == read.LitForm {
		return read.LitOf(scalar.Text(a.Lit) + scalar.Text(b.Lit))
	}
	if a.Form == read.LitForm && scalar.Text(a.Lit) == "" {
		return asText(l, b)
	}
	if b.Form == read.LitForm && scalar.Text(b.Lit) == "" {
		return asText(l, a)
	}
	mustBeOfOneOrigin(l, a, b)
	x, ofX := Text(l, a)
	y, ofY := Text(l, b)
	if read.IsConfigured(b) {
		a = b
	}
	return likeText(a, x.Plus(y)).Demanding(ofX, ofY)
}

// mustBeOfOneOrigin refuses operands that become one text, of which some are texts of the
// configuration, in which wildcards are a pattern's, and some the request's, in which they
// are none.
func mustBeOfOneOrigin(l *read.Lowering, operands ...read.Operand) {
	some := func(is func(read.Operand) bool) bool {
		return slices.ContainsFunc(operands, func(j read.Operand) bool { return j.Some(is) })
	}
	if some(read.IsConfigured) && some(mayHoldWildcards) {
		panic(l.Unsupported("a text of the request beside one of the cluster's configuration, of which only that may be a pattern,"))
	}
}

// mayHoldWildcards tells of a value of the request whose text may have wildcards in it.
func mayHoldWildcards(j read.Operand) bool {
	switch {
	case j.Form == read.LitForm, j.Form == read.ErrorForm, read.IsConfigured(j), j.Form == read.PlaceForm && read.IsPlain(j.V.Typ):
		return false
	}
	k := read.KindOf(j.Typ())
	return k != schema.Int && k != schema.Bool
}

// jsonText is the refusal of a list or a map inside a longer text, which is JSON to Kyverno,
// and of what may be one.
func jsonText(l *read.Lowering) read.Refusal {
	return l.Unsupported("the JSON text of a value inside a longer text")
}

// asText is the text of j.
func asText(l *read.Lowering, j read.Operand) read.Operand {
	text, d := Text(l, j)
	return likeText(j, text).Demanding(d)
}

// Text is j as it stands inside a longer string, and what reading it demands.
func Text(l *read.Lowering, j read.Operand) (cel.Value, read.Demands) {
	if j.Form == read.LitForm {
		return cel.String(scalar.Text(j.Lit)), j.Anyway()
	}
	if j.Form == read.SequenceForm {
		panic(jsonText(l))
	}
	v, d, ok := read.Strictly(l, j)
	if ok {
		switch read.KindOf(j.Typ()) {
		case schema.String:
			if shaped := j.V.Shaped(); j.Form == read.PlaceForm && !shaped.IsTrue() {
				return cel.Cond(shaped, j.V.Expr, cel.String("null")), d
			}
			return v, d
		case schema.Int, schema.Bool, schema.IntOrString:
			if shaped := j.V.Shaped(); j.Form == read.PlaceForm && !shaped.IsTrue() {
				return cel.Cond(shaped, cel.Func(cel.FuncString, j.V.Expr), cel.String("null")), d
			}
			return cel.Func(cel.FuncString, v), d
		}
	}
	panic(jsonText(l))
}

// Variable lowers one {{ }}.
func Variable(l *read.Lowering, v *jmespath.Variable) read.Operand {
	l.SetPos(v.Pos)
	if v.Expr == nil {
		panic(l.Unsupported("an expression that is put together from variables"))
	}
	l = l.Inside()
	l.DeleteRewrite = true
	filling := filled(l, v.Expr)
	return query(l, v.Expr).Demanding(filling)
}

// ParseTemplate reads a text with {{ }}. It refuses one that cannot be read.
func ParseTemplate(s string, pos diag.Pos) *jmespath.Template {
	t, d := jmespath.ParseTemplate(s, pos)
	if d != nil {
		panic(read.Refusal{Diagnostic: diag.Warnf(d.Pos, d.Code, "%s; the webhook will judge this rule", d.Message)})
	}
	return t
}

// oneText is a choice among texts as one text. A choice of which a branch is an
// error for certain stays one.
func oneText(l *read.Lowering, j read.Operand) read.Operand {
	if j.Form != read.ChoiceForm || j.Some(func(branch read.Operand) bool { return branch.Form == read.ErrorForm }) {
		return j
	}
	text, d := chosenText(l, j)
	if j.Some(read.IsConfigured) {
		return read.ConfiguredText(text).Demanding(d)
	}
	return read.StringOf(text).Demanding(d)
}

func chosenText(l *read.Lowering, j read.Operand) (cel.Value, read.Demands) {
	if j.Form != read.ChoiceForm {
		return Text(l, j)
	}
	mustBeOfOneOrigin(l, j)
	then, ofThen := chosenText(l, *j.Then)
	els, ofEls := chosenText(l, *j.Els)
	return cel.Cond(j.C, then, els), read.DemandsWhere(j.C, ofThen, ofEls)
}

// filled is what the variables inside an expression demand. Kyverno fills those in first, as
// text: also where the expression turns out not to need them.
func filled(l *read.Lowering, e *jmespath.Expr) (d read.Demands) {
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		for _, t := range []*jmespath.Template{e.Text, e.Dynamic} {
			if t != nil {
				d = d.And(filledTemplate(l, t))
			}
		}
		return e.Text == nil && e.Dynamic == nil // which have seen to what is inside them
	})
	return d
}

func filledTemplate(l *read.Lowering, t *jmespath.Template) (d read.Demands) {
	for _, part := range t.Parts {
		if part.Var == nil {
			continue
		}
		of, ok := read.DemandsOf(l, Variable(l, part.Var))
		if !ok {
			panic(l.Unsupported("a list or a map inside an expression"))
		}
		d = d.And(of)
	}
	return d
}
