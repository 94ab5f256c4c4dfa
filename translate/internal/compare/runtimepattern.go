package compare

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

// UnknownPattern refuses a pattern that only a request tells.
func UnknownPattern(l *read.Lowering, p *policy.Node) read.Refusal {
	return l.Refuse(diag.PatternVariable, "a pattern that is only known at run time, %q", p.Str)
}

// IsPlainText tells of a text of the request.
func IsPlainText(j read.Operand) bool {
	return j.Form == read.PlaceForm && read.KindOf(j.Typ()) == schema.String && j.V.Shaped().IsTrue() && !read.IsConfigured(j)
}

// IsRuntime tells of a leaf that stands for a text of the request.
func IsRuntime(l *read.Lowering, p *policy.Node) bool {
	_, ok := l.RuntimeTexts[p]
	return ok
}

// RuntimeScalar is: the value satisfies the text that the leaf stands for, with the given
// verdict where it is missing.
func RuntimeScalar(l *read.Lowering, v read.Place, p *policy.Node, missing bool) cel.Bool {
	switch {
	case v.Never:
		return cel.Lit(missing)
	case v.Certain():
		return runtimeValue(l, v, p)
	}
	return whereFound(v.Found(), runtimeValue(l, v, p), cel.Lit(missing))
}

// runtimeValue is: a value that is there satisfies the text. Of a list, every element must.
func runtimeValue(l *read.Lowering, v read.Place, p *policy.Node) cel.Bool {
	each := func(elem *schema.Type) cel.Bool {
		return l.Binders.All(v.Expr, "item", func(x cel.Value) cel.Bool { return RuntimeElement(l, read.PlaceOf(x, elem), p) })
	}
	switch v.Kind() {
	case schema.List:
		return each(v.Elem())
	case schema.Any:
		return whereFound(cel.Not(read.IsList(v.Expr)), RuntimeElement(l, v, p), each(read.AnyType()))
	}
	return RuntimeElement(l, v, p)
}

// RuntimeElement is runtimeValue for an element of a list, of which no list satisfies a text.
func RuntimeElement(l *read.Lowering, x read.Place, p *policy.Node) cel.Bool {
	t := l.RuntimeTexts[p]
	switch {
	case x.Kind() == schema.String:
		return t.IsSame(x)
	case x.Dynamic() && t.Alone:
		return read.Dyn(x.Expr).Eq(t.Text)
	}
	l.SetPos(p.Pos)
	panic(l.Refuse(diag.PatternVariable, "a pattern that is only known at run time, for a value that is no text by its type"))
}

// whereFound is b where c holds, which is no error, and otherwise where it does not.
func whereFound(c, b, otherwise cel.Bool) cel.Bool {
	switch {
	case otherwise.IsTrue():
		return cel.Implies(c, b)
	case otherwise.IsFalse():
		return cel.And(c, b)
	}
	return cel.CondBool(c, b, otherwise)
}
