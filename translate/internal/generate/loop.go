package generate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/mutate"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/rule"
)

// loop is an entry of a foreach. What is an error for one element keeps no other from being made:
// all() goes on behind an error.
//
//	object.data.namespaces.split(',').all(namespace, generator.Apply(namespace, […]))
func loop(l *read.Lowering, f *policy.GenerateForEach) partial.Bool {
	l = l.Inside()
	of := mutate.ElementsOf(l, f.List)
	x, release := l.Binders.Bind(of.Hint)
	defer release()
	in := rule.Entered(l, &policy.ForEach{Pos: f.Pos, List: f.List, Context: f.Context, Preconditions: f.Preconditions},
		read.OperandAt(read.PlaceOf(x, of.Elem)), rule.NoIndex(l), 0)
	in.SetPos(f.Pos)
	when := celrule.Simplified(in, condition.Conditions(in, f.Preconditions), in.Environment)
	each := when.Implies(made(in, &f.GenerateTarget))
	out := l.Told(of.Reading, of.List.Macro(cel.MacroAll, x, each.Expr.Value).AsBool())
	if each.Errs {
		out = out.ErrsInCEL()
	}
	return out
}
