package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A leaf of a pattern that is one variable is only known at run time. A value satisfies it by
// being the same. Wildcards that the policy writes around a variable are wildcards.

// A runtimeText is what a leaf stands for: a text of a type or, where there is a wildcard in
// front of it or behind, which texts match.
type runtimeText struct {
	text  cel.Value
	typ   *schema.Type
	match func(cel.Value) cel.Bool
	alone bool // there are no words around the variable, so that no number has the text
}

// runtimeLeaf is a leaf that stands for a variable's text. Around the variable there
// may be words and wildcards, but no operators.
func (l *lowering) runtimeLeaf(p *policy.Node, t *jmespath.Template, j operand) *policy.Node {
	has := func(chars string) bool {
		return slices.ContainsFunc(t.Parts, func(part jmespath.Part) bool { return strings.ContainsAny(part.Text, chars) })
	}
	if has("|&<>! \t\r\n") || !isPlainText(j) {
		panic(l.unknownPattern(p))
	}
	stands := runtimeText{text: j.v.expr, typ: j.typ(), alone: t.Single() != nil}
	if has("*?") {
		stands = l.wildText(p, t)
	}
	l.noteSame(j, j)
	l.ask(j)
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

// wildText is a text with a * at one end.
func (l *lowering) wildText(p *policy.Node, t *jmespath.Template) runtimeText {
	plain := *t
	plain.Parts = slices.Clone(t.Parts)
	first, last := &plain.Parts[0], &plain.Parts[len(plain.Parts)-1]
	before := strings.HasPrefix(first.Text, "*")
	if before {
		first.Text = first.Text[1:]
	} else {
		last.Text = strings.TrimSuffix(last.Text, "*")
	}
	if slices.ContainsFunc(plain.Parts, func(part jmespath.Part) bool { return scalar.IsWild(part.Text) }) {
		panic(l.unknownPattern(p))
	}
	out := runtimeText{text: l.text(l.filledText(&plain)), typ: stringType()}
	out.match = func(x cel.Value) cel.Bool {
		if before {
			return x.EndsWith(out.text)
		}
		return x.StartsWith(out.text)
	}
	return out
}

// isRuntime tells of a leaf that stands for a text of the request.
func (l *lowering) isRuntime(p *policy.Node) bool {
	_, ok := l.runtimeTexts[p]
	return ok
}

// runtimeScalar is: the value satisfies the text that the leaf stands for. Missing is what
// counts where there is none; nothing satisfies a text where it is nil.
func (l *lowering) runtimeScalar(v place, p *policy.Node, missing *bool) cel.Bool {
	there := cel.Lit(missing != nil && *missing)
	switch {
	case v.never:
		return there
	case v.certain():
		return l.runtimeValue(v, p)
	}
	return whereFound(v.found(), l.runtimeValue(v, p), there)
}

// runtimeValue is: a value that is there satisfies the text. Of a list, every element must.
func (l *lowering) runtimeValue(v place, p *policy.Node) cel.Bool {
	each := func(elem *schema.Type) cel.Bool {
		return l.binders.All(v.expr, "item", func(x cel.Value) cel.Bool { return l.runtimeElement(placeOf(x, elem), p) })
	}
	switch v.kind() {
	case schema.List:
		return each(v.elem())
	case schema.Any:
		return whereFound(cel.Not(isList(v.expr)), l.runtimeElement(v, p), each(anyType()))
	}
	return l.runtimeElement(v, p)
}

// runtimeElement is runtimeValue for an element of a list, of which no list satisfies a text.
func (l *lowering) runtimeElement(x place, p *policy.Node) cel.Bool {
	t := l.runtimeTexts[p]
	switch {
	case x.kind() == schema.String:
		return t.isSame(x)
	case x.dynamic() && t.alone:
		return dyn(x.expr).Eq(t.text)
	}
	l.setPos(p.Pos)
	panic(l.refuse(diag.PatternVariable, "a pattern that is only known at run time, for a value that is no text by its type"))
}

// isSame is: a text that is there is the one that the leaf stands for.
func (t runtimeText) isSame(v place) cel.Bool {
	switch {
	case t.match != nil:
		return t.match(v.expr)
	case isQuantityType(t.typ) && isQuantityType(v.typ):
		return cel.Func(cel.FuncQuantity, v.expr).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, t.text)).Eq(cel.Int(0))
	case isDurationType(t.typ) && isDurationType(v.typ):
		return cel.Func(cel.FuncDuration, v.expr).Eq(cel.Func(cel.FuncDuration, t.text))
	}
	return v.expr.Eq(t.text)
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
