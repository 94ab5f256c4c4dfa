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
	plainWord = `^([^-+.0-9|&<>!*?\s][^|&*?\s]*)?$`
	operators = `[|&<>!*?\s]|^[-+]?\d+(\.\d+)?[A-Za-z]*!?-[-+]?\d`
	// patternError is the key whose absence an error names.
	patternError = "pattern_with_operators"
)

// runtimeLeaf is a leaf that stands for a variable's text. Around the variable there
// may be words, but no operators: every value would meet them.
func (l *lowering) runtimeLeaf(p *policy.Node, t *jmespath.Template, j operand) *policy.Node {
	operated := slices.ContainsFunc(t.Parts, func(part jmespath.Part) bool { return strings.ContainsAny(part.Text, "|&<>!*? \t\r\n") })
	if operated || j.form != placeForm || kindOf(j.typ()) != schema.String || !j.v.shaped().IsTrue() || isConfigured(j) {
		panic(l.refuse(diag.PatternVariable, "a pattern that is only known at run time, %q", p.Str))
	}
	l.note(diag.RuntimeText, "the pattern %q is known only at run time; a value with operators or a range is an error", p.Str)
	*l.needs = append(*l.needs, j.v.found())
	leaf := &policy.Node{Kind: policy.String, Pos: p.Pos}
	l.runtimeTexts[leaf] = j.v.expr
	return leaf
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
	text := l.runtimeTexts[p]
	field := variableName(v.expr.LastField(), "value")
	text = l.once("expected"+capital(field), text)
	switch {
	case v.never:
		return l.runtimeMissing(text, missing)
	case v.kind() == schema.List && kindOf(v.elem()) == schema.String:
		each := l.binders.All(v.expr, "item", func(x cel.Value) cel.Bool { return l.satisfiesText(x, text) })
		if v.certain() {
			return each
		}
		return cel.CondBool(v.found(), each, l.runtimeMissing(text, missing))
	case v.kind() != schema.String:
		l.setPos(p.Pos)
		panic(l.refuse(diag.PatternVariable, "a pattern that is only known at run time, for a value that is no text"))
	case v.certain():
		return l.satisfiesText(v.expr, text)
	case missing == nil && !v.opt.IsZero():
		return l.satisfiesText(l.once(field, v.opt.OrValue(cel.String("0"))), text)
	}
	return cel.CondBool(v.found(), l.satisfiesText(v.expr, text), l.runtimeMissing(text, missing))
}

// runtimeElement is runtimeScalar for an element of a list, of which no list satisfies a
// text.
func (l *lowering) runtimeElement(x place, p *policy.Node) cel.Bool {
	if x.kind() == schema.List {
		return cel.False()
	}
	return l.runtimeScalar(x, p, nil)
}

func (l *lowering) runtimeMissing(text cel.Value, missing *bool) cel.Bool {
	if missing != nil {
		return cel.Lit(*missing)
	}
	return l.satisfiesText(cel.String("0"), text)
}

// satisfiesText is: the text x satisfies a pattern.
func (l *lowering) satisfiesText(x, pattern cel.Value) cel.Bool {
	durations := cel.Func(cel.FuncDuration, x).Eq(cel.Func(cel.FuncDuration, pattern))
	quantities := cel.Func(cel.FuncQuantity, x).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, pattern)).Eq(cel.Int(0))
	number := cel.CondBool(cel.And(isDuration(x), isDuration(pattern)), durations,
		cel.And(isQuantity(x), isQuantity(pattern), quantities))
	decided := cel.Or(x.Eq(pattern), cel.And(cel.Not(pattern.Matches(plainWord)), number))
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
