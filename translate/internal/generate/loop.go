package generate

import (
	"strings"

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
//
// CEL counts no elements. Where a rule does, it goes through the indexes of the list:
//
//	lists.range(variables.namespaces.size()).all(i, generator.Apply(variables.namespaces[i], […]))
func loop(l *read.Lowering, f *policy.GenerateForEach) partial.Bool {
	l = l.Inside()
	of := mutate.ElementsOf(l, f.List)
	if !strings.Contains(string(policy.Marshal(f.Source)), "elementIndex") {
		return each(l, f, of, of.List, of.Hint, func(x cel.Value) (element cel.Value, index read.Operand) { return x, rule.NoIndex(l) })
	}
	list := read.Let(l, of.Hint+"s", of.List)
	indexes := cel.Ident("lists").Call("range", list.Size())
	return each(l, f, of, indexes, "i", func(i cel.Value) (element cel.Value, index read.Operand) { return list.Index(i), read.IntOf(i) })
}

// each is an entry for each of what a list has.
func each(l *read.Lowering, f *policy.GenerateForEach, of mutate.Elements, list cel.Value, hint string, enter func(x cel.Value) (cel.Value, read.Operand)) partial.Bool {
	if hint == "generator" || hint == "resource" { // it would hide what makes and reads objects
		hint = "element"
	}
	x, release := l.Binders.Bind(hint)
	defer release()
	element, index := enter(x)
	in := rule.Entered(l, &policy.ForEach{Pos: f.Pos, List: f.List, Context: f.Context, Preconditions: f.Preconditions},
		read.OperandAt(read.PlaceOf(element, of.Elem)), index, 0)
	in.SetPos(f.Pos)
	when := celrule.Simplified(in, condition.Conditions(in, f.Preconditions), in.Environment)
	one := when.Implies(made(in, &f.GenerateTarget))
	out := l.Told(of.Reading, list.Macro(cel.MacroAll, x, one.Expr.Value).AsBool())
	if one.Errs {
		out = out.ErrsInCEL()
	}
	return out
}
