package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// template lowers a string of the source.
func (l *lowering) template(t *jmespath.Template) operand { return l.templateOf(t, l.variable) }

// templateOf is template, given what a variable is.
func (l *lowering) templateOf(t *jmespath.Template, variable func(*jmespath.Variable) operand) operand {
	if s, ok := t.Constant(); ok {
		return litOf(s)
	}
	if v := t.Single(); v != nil {
		return variable(v)
	}
	out := litOf("")
	for _, part := range t.Parts {
		switch {
		case part.Ref != nil:
			panic(l.unsupported("a reference $(...)"))
		case part.Var != nil:
			out = l.join(out, variable(part.Var))
		default:
			out = l.join(out, litOf(part.Text))
		}
	}
	return out
}

// join is the text of a and b.
func (l *lowering) join(a, b operand) operand {
	if multiply(a, b) {
		a, b = l.oneText(a), l.oneText(b)
	}
	if b.form == choiceForm {
		return l.inEach(b, func(b operand) operand { return l.join(a, b) })
	}
	if a.form == choiceForm {
		return l.inEach(a, func(a operand) operand { return l.join(a, b) })
	}
	if a.form == litForm && b.form == litForm {
		return litOf(scalar.Text(a.lit) + scalar.Text(b.lit))
	}
	if a.form == litForm && scalar.Text(a.lit) == "" {
		return l.likeText(b, l.text(b))
	}
	if b.form == litForm && scalar.Text(b.lit) == "" {
		return l.likeText(a, l.text(a))
	}
	l.mustBeOfOneOrigin(a, b)
	text := l.text(a).Plus(l.text(b))
	if isConfigured(b) {
		return l.likeText(b, text)
	}
	return l.likeText(a, text)
}

// mustBeOfOneOrigin refuses operands that become one text, of which some are texts of the
// configuration, in which wildcards are a pattern's, and some the request's, in which they
// are none.
func (l *lowering) mustBeOfOneOrigin(operands ...operand) {
	some := func(is func(operand) bool) bool {
		return slices.ContainsFunc(operands, func(j operand) bool { return j.some(is) })
	}
	if some(isConfigured) && some(mayHoldWildcards) {
		panic(l.unsupported("a text of the request beside one of the cluster's configuration, of which only that may be a pattern,"))
	}
}

// mayHoldWildcards tells of a value of the request whose text may have wildcards in it.
func mayHoldWildcards(j operand) bool {
	switch {
	case j.form == litForm, j.form == errorForm, isConfigured(j), j.form == placeForm && j.v.origin == fromServer:
		return false
	}
	k := kindOf(j.typ())
	return k != schema.Int && k != schema.Bool
}

// jsonText is the refusal of a list or a map inside a longer text, which is JSON to Kyverno,
// and of what may be one.
func (l *lowering) jsonText() refusal {
	return l.unsupported("the JSON text of a value inside a longer text")
}

// text is j as it stands inside a longer string; an error where a key is missing.
func (l *lowering) text(j operand) cel.Value {
	if j.form == litForm {
		return cel.String(scalar.Text(j.lit))
	}
	if j.form == sequenceForm {
		panic(l.jsonText())
	}
	v, ok := l.expr(j)
	if ok {
		switch kindOf(j.typ()) {
		case schema.String:
			if shaped := j.v.shaped(); j.form == placeForm && !shaped.IsTrue() {
				return cel.Cond(shaped, j.v.expr, cel.String("null"))
			}
			return v
		case schema.Int, schema.Bool, schema.IntOrString:
			if shaped := j.v.shaped(); j.form == placeForm && !shaped.IsTrue() {
				return cel.Cond(shaped, cel.Func(cel.FuncString, j.v.expr), cel.String("null"))
			}
			return cel.Func(cel.FuncString, v)
		}
	}
	panic(l.jsonText())
}

// variable lowers one {{ }}.
func (l *lowering) variable(v *jmespath.Variable) operand {
	if v.Pos != (diag.Pos{}) {
		l.setPos(v.Pos)
	}
	if v.Expr == nil {
		panic(l.unsupported("an expression that is put together from variables"))
	}
	defer l.restore(l.environment)
	l.deleteRewrite = true
	l.filled(v.Expr)
	return l.query(v.Expr)
}

func (l *lowering) parseTemplate(s string, pos diag.Pos) *jmespath.Template {
	t, d := jmespath.ParseTemplate(s, pos)
	if d != nil {
		panic(refusal{diag.Warnf(d.Pos, diag.NoExpression, "%s; the webhook will judge this rule", d.Message)})
	}
	return t
}
