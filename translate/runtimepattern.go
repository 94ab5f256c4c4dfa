package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// A leaf of a pattern that is one variable is only known at run time, and so is
// whether its text has operators. Most texts are words, which a value satisfies
// by being the same. Others may be numbers, quantities or durations, and compare
// as such. A text with operators, wildcards or a range is an error here.
const (
	operators  = `[|&<>!*?\s]|^[-+]?\d+(\.\d+)?[A-Za-z]*!?-[-+]?\d`
	anOperator = `[|&<>!*?\s]`
	// patternError is the key whose absence an error names.
	patternError = "pattern_with_operators"
)

// A runtimeText is what a leaf stands for: a text or, where there are wildcards around
// variables, what they give and which texts match. Such a one is no number and no null.
type runtimeText struct {
	text  cel.Value
	vars  []cel.Value
	match func(cel.Value) cel.Bool
	// numeric tells that what stands between the variables may be a part of a number.
	numeric bool
}

// runtimeLeaf is a leaf that stands for a variable's text. Around the variable there
// may be words and wildcards, but no operators: every value would meet them.
func (l *lowering) runtimeLeaf(p *policy.Node, t *jmespath.Template, j operand) *policy.Node {
	has := func(chars string) bool {
		return slices.ContainsFunc(t.Parts, func(part jmespath.Part) bool { return strings.ContainsAny(part.Text, chars) })
	}
	if has("|&<>! \t\r\n") || !isPlainText(j) {
		panic(l.unknownPattern(p))
	}
	stands := runtimeText{text: j.v.expr}
	if has("*?") {
		stands = l.wildText(p, t)
	}
	l.note(diag.RuntimeText, "the pattern %q is known only at run time; a value with operators or a range is an error", p.Str)
	*l.needs = append(*l.needs, j.v.found())
	leaf := &policy.Node{Kind: policy.String, Pos: p.Pos}
	l.runtimeTexts[leaf] = stands
	return leaf
}

func (l *lowering) unknownPattern(p *policy.Node) refusal {
	return l.refuse(diag.PatternVariable, "a pattern that is only known at run time, %q", p.Str)
}

// isPlainText tells of a text of the request.
func isPlainText(j operand) bool {
	return j.form == placeForm && kindOf(j.typ()) == schema.String && j.v.shaped().IsTrue() && !isConfigured(j)
}

// wildText is a text with wildcards around variables. A word must stand beside them: a
// wildcard alone takes more than texts.
func (l *lowering) wildText(p *policy.Node, t *jmespath.Template) runtimeText {
	var out runtimeText
	words := ""
	for _, part := range t.Parts {
		words += part.Text
		if part.Var == nil {
			continue
		}
		j := l.filledText(&jmespath.Template{Pos: t.Pos, Parts: []jmespath.Part{part}})
		if !isPlainText(j) {
			panic(l.unknownPattern(p))
		}
		out.vars = append(out.vars, j.v.expr)
	}
	if strings.Trim(words, "*?") == "" {
		panic(l.unknownPattern(p))
	}
	out.numeric = strings.Trim(words, "*?+-.E0123456789") == ""
	plain := *t
	plain.Parts = slices.Clone(t.Parts)
	first, last := &plain.Parts[0], &plain.Parts[len(plain.Parts)-1]
	before, after := strings.HasPrefix(first.Text, "*"), strings.HasSuffix(last.Text, "*")
	first.Text = strings.TrimPrefix(first.Text, "*")
	last.Text = strings.TrimSuffix(last.Text, "*")
	if strings.Count(words, "*")+strings.Count(words, "?") != 1 {
		before, after, plain = false, false, *t
	}
	out.text = l.text(l.filledText(&plain))
	out.match = func(x cel.Value) cel.Bool {
		switch {
		case before:
			return x.EndsWith(out.text)
		case after:
			return x.StartsWith(out.text)
		}
		return matchesPattern(x, patternOf(out.text))
	}
	return out
}

// isRuntime tells of a leaf that stands for a text of the request.
func (l *lowering) isRuntime(p *policy.Node) bool {
	_, ok := l.runtimeTexts[p]
	return ok
}

// runtimeScalar is: the value satisfies the text that the leaf stands for. Where
// missing is nil, a missing value is matched as null, which is the number 0 to
// texts that are numbers and nothing to all others; so "0" may stand in for it.
func (l *lowering) runtimeScalar(v place, p *policy.Node, missing *bool) cel.Bool {
	t := l.runtimeTexts[p]
	field := variableName(v.expr.LastField(), "value")
	if t.match == nil {
		t.text = l.once("expected"+capital(field), t.text)
	}
	switch {
	case v.never:
		return l.runtimeMissing(t, missing)
	case v.certain():
		return l.runtimeValue(v, p, t, true)
	case v.kind() == schema.String && missing == nil && t.match == nil && !v.opt.IsZero():
		return l.satisfiesText(l.once(field, v.opt.OrValue(cel.String("0"))), t)
	}
	return whereFound(v.found(), l.runtimeValue(v, p, t, true), l.runtimeMissing(t, missing))
}

// runtimeElement is runtimeScalar for an element of a list, of which no list satisfies a
// text.
func (l *lowering) runtimeElement(x place, p *policy.Node) cel.Bool {
	return l.runtimeValue(x, p, l.runtimeTexts[p], false)
}

// runtimeValue is: a value that is there satisfies the text. Of a list, every element
// must, where lists are gone through.
func (l *lowering) runtimeValue(v place, p *policy.Node, t runtimeText, lists bool) cel.Bool {
	each := func(elem *schema.Type) cel.Bool {
		if !lists {
			return cel.False()
		}
		return l.binders.All(v.expr, "item", func(x cel.Value) cel.Bool { return l.runtimeValue(placeOf(x, elem), p, t, false) })
	}
	switch v.kind() {
	case schema.String:
		return l.satisfiesText(v.expr, t)
	case schema.Bool, schema.Int, schema.IntOrString:
		return l.satisfiesText(cel.Func(cel.FuncString, v.expr), t)
	case schema.List:
		return each(v.elem())
	case schema.Any:
		scalar := cel.And(cel.Not(isMap(v.expr)), l.runtimeAny(v.expr, t))
		return whereFound(cel.Not(isList(v.expr)), scalar, each(anyType()))
	case schema.Map, schema.Object:
		return cel.False()
	case schema.Number:
	}
	l.setPos(p.Pos)
	panic(l.refuse(diag.PatternVariable, "a pattern that is only known at run time, for a value that is no text"))
}

// runtimeAny is: a value of unknown type, which is no list and no map, satisfies the text.
func (l *lowering) runtimeAny(v cel.Value, t runtimeText) cel.Bool {
	text := cel.Func(cel.FuncString, v)
	switch {
	case t.match != nil && t.numeric: // a number with a fraction has a text of its own to a wildcard
		text = cel.Cond(isNumber(v), l.numberText(v), text)
	case t.match != nil:
		return cel.And(cel.Not(isNull(v)), cel.Not(typeIs(v, "double")), l.satisfiesText(text, t))
	}
	text = l.once(variableName(v.LastField(), "value")+"Text", text)
	return whereFound(cel.Not(isNull(v)), l.satisfiesText(text, t), l.runtimeMissing(t, nil))
}

// whereFound is b where c holds, which is no error, and otherwise where it does not.
func whereFound(c, b, otherwise cel.Bool) cel.Bool {
	if known, ok := otherwise.Const(); ok && known {
		return cel.Implies(c, b)
	} else if ok {
		return cel.And(c, b)
	}
	return cel.CondBool(c, b, otherwise)
}

func (l *lowering) runtimeMissing(t runtimeText, missing *bool) cel.Bool {
	switch {
	case missing != nil:
		return cel.Lit(*missing)
	case t.match != nil:
		return cel.False()
	}
	return l.satisfiesText(cel.String("0"), t)
}

// satisfiesText is: the text x satisfies a pattern.
func (l *lowering) satisfiesText(x cel.Value, t runtimeText) cel.Bool {
	if t.match != nil {
		var operated []cel.Bool
		for _, v := range t.vars {
			operated = append(operated, v.Matches(anOperator))
		}
		return cel.CondBool(cel.Or(operated...), l.failing(typeError(patternError)), t.match(x))
	}
	pattern := t.text
	durations := cel.Func(cel.FuncDuration, x).Eq(cel.Func(cel.FuncDuration, pattern))
	quantities := cel.Func(cel.FuncQuantity, x).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, pattern)).Eq(cel.Int(0))
	number := cel.CondBool(cel.And(isDuration(x), isDuration(pattern)), durations,
		cel.And(isQuantity(x), isQuantity(pattern), quantities))
	decided := cel.Or(x.Eq(pattern), number)
	return cel.CondBool(pattern.Matches(operators), l.failing(typeError(patternError)), decided)
}

// needing is b, an error where a text that the pattern stands for is missing:
// Kyverno fills in variables before it looks at the object.
func (l *lowering) needing(build func() cel.Bool) native.Truth {
	defer l.restore(l.environment)
	l.needs = &[]cel.Bool{}
	t := l.effect(build)
	needs := slices.DeleteFunc(*l.needs, func(c cel.Bool) bool { return c.IsTrue() })
	if len(needs) == 0 {
		return t
	}
	return native.MayErr(cel.CondBool(cel.And(needs...), t.Expr, l.failing(typeError("variable"))))
}
