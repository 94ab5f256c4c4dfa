package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Inside a longer text a list or a map is JSON to Kyverno, which CEL cannot write.
// Where the type of a value is only known at run time, that is a case of its own: a
// text of which is known what it begins with, and that a bracket or brace follows.
// That is enough to say that it is no number, no word, and nothing that an anchored
// expression takes.

// jsonText is the refusal of what asks for more.
func (l *lowering) jsonText() refusal {
	return l.unsupported("the JSON text of a value inside a longer text")
}

// asText is j, told apart where it may be a list or a map: what it is as a text then.
func (l *lowering) asText(j operand) operand {
	j, named := l.chosenOnce(j)
	return l.inEach(j, func(j operand) operand {
		if j.form != placeForm || !j.v.dynamic() || j.v.never || isConfigured(j) {
			return j
		}
		v, ok := l.expr(j)
		if !ok {
			return j
		}
		l.note(diag.TextForm, "a number with a fraction and more than six digits is an error here inside a text")
		if !named {
			v = l.once(variableName(j.v.expr.LastField(), "value"), dyn(v))
		}
		text := cel.Func(cel.FuncString, v)
		if !j.traits().present {
			text = cel.Cond(isNull(v), cel.String("null"), text)
		}
		rounded := cel.And(typeIs(v, "double"), cel.Func(cel.FuncString, v).Contains(cel.String("e")))
		number := cel.Cond(rounded, cel.Func(cel.FuncString, partial.Fault("number_text")), text)
		out := choice(cel.Or(isList(v), isMap(v)), operand{form: jsonForm, lit: ""}, stringOf(number).softly())
		out.strict = v
		return out
	})
}

// chosenOnce is j as one value, if it is a choice among values of unknown type that are
// there and texts: what it is as a text is then asked of that one, and not of each.
func (l *lowering) chosenOnce(j operand) (one operand, named bool) {
	var name string
	other := func(branch operand) bool {
		if _, isText := branch.lit.(string); branch.form == litForm && isText {
			return false
		}
		if branch.form != placeForm || !branch.v.dynamic() || !branch.traits().present || isConfigured(branch) {
			return true
		}
		name = variableName(branch.v.expr.LastField(), "value")
		return false
	}
	if j.form != choiceForm || j.some(other) || name == "" {
		return j, false
	}
	v, ok := l.expr(j)
	if !ok || l.binders.Binds(v) {
		return j, false
	}
	if j.then.typ().Kind == j.els.typ().Kind {
		v = dyn(v)
	}
	return dynamicOf(l.let(name, v)).presentNow(), true
}

// joinJSON is the text of a and b where either may be JSON; b was written so.
func (l *lowering) joinJSON(a, b, written operand) (operand, bool) {
	switch {
	case !a.some(isJSON) && !b.some(isJSON):
		return operand{}, false
	case a.form == choiceForm && a.some(isJSON):
		return l.eachWay(a,
			func() operand { return l.join(*a.then, written) },
			func() operand { return l.join(*a.els, b) }), true
	case b.form == choiceForm && b.some(isJSON):
		return l.eachWay(b,
			func() operand { return l.join(a, *b.then) },
			func() operand { return l.join(a, *b.els) }), true
	case a.form == litForm: // and b is JSON
		if begins, ok := b.lit.(string); ok {
			b.lit = scalar.Text(a.lit) + begins
		}
		return b, true
	case a.form == jsonForm:
		return l.ifRead(b, a), true
	}
	return l.ifRead(a, operand{form: jsonForm}), true // nobody knows what it begins with
}

// twoWays is j, which may be JSON in some of many ways, as JSON or one text. A choice
// of which a branch is an error for certain stays as it is.
func (l *lowering) twoWays(j operand) operand {
	if !j.some(isJSON) || j.cases() <= 2 || j.some(func(branch operand) bool { return branch.form == errorForm }) {
		return j
	}
	is, text := l.jsonOrText(j)
	return choice(is, operand{form: jsonForm}, text)
}

// jsonOrText is whether j is JSON, and the text that it is if not.
func (l *lowering) jsonOrText(j operand) (cel.Bool, operand) {
	switch {
	case isJSON(j):
		return cel.True(), j
	case j.form != choiceForm:
		return cel.False(), l.likeText(j, l.text(j))
	}
	var then, els operand
	thenIs, elsIs := l.eitherWay(j.c,
		func() (is cel.Bool) { is, then = l.jsonOrText(*j.then); return is },
		func() (is cel.Bool) { is, els = l.jsonOrText(*j.els); return is })
	is := cel.CondBool(j.c, thenIs, elsIs)
	switch {
	case isJSON(then):
		return is, els
	case isJSON(els):
		return is, then
	}
	return is, l.likeText(then, l.chosenText(j.with(then, els)))
}

func isJSON(j operand) bool { return j.form == jsonForm }

// ifRead is j, and an error where reading other is one.
func (l *lowering) ifRead(other, j operand) operand {
	if other.form == jsonForm {
		return j
	}
	if !l.ask(other) {
		panic(l.jsonText())
	}
	return j
}

// jsonEquals is: a text with JSON in it equals a literal. It is no quantity and no
// duration, so it could only be the same text.
func (l *lowering) jsonEquals(want any) bool {
	text, ok := want.(string)
	if ok && (scalar.IsWild(text) || strings.ContainsAny(text, "[{")) {
		panic(l.jsonText())
	}
	return false
}

// jsonMatches is: a text with JSON in it matches a regular expression.
func (l *lowering) jsonMatches(j operand, re string) bool {
	begins, ok := j.lit.(string)
	if !ok || scalar.MayMatch(re, begins+"[") || scalar.MayMatch(re, begins+"{") {
		panic(l.jsonText())
	}
	return false
}
