package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A leaf of a pattern that is one variable is only known at run time. A value satisfies it by
// being the same. Wildcards that the policy writes around a variable are wildcards.

// A RuntimeText is what a leaf stands for: a text of a type or, where there is a wildcard in
// front of it or behind, which texts match.
type RuntimeText struct {
	Text  cel.Value
	Typ   *schema.Type
	Match func(cel.Value) cel.Bool
	Alone bool // there are no words around the variable, so that no number has the text
}

// IsSame is: a text that is there is the one that the leaf stands for.
func (t RuntimeText) IsSame(v Place) cel.Bool {
	switch {
	case t.Match != nil:
		return t.Match(v.Expr)
	case IsQuantityType(t.Typ) && IsQuantityType(v.Typ):
		return cel.Func(cel.FuncQuantity, v.Expr).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, t.Text)).Eq(cel.Int(0))
	case IsDurationType(t.Typ) && IsDurationType(v.Typ):
		return cel.Func(cel.FuncDuration, v.Expr).Eq(cel.Func(cel.FuncDuration, t.Text))
	}
	return v.Expr.Eq(t.Text)
}
