package query

import (
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/read"
)

// whereFilledBy is j, and an error of a context entry where a variable in a value is one.
func whereFilledBy(l *read.Lowering, n *policy.Node, name string, j read.Operand) read.Operand {
	noVariableKeys(l, n)
	d := Filling(l, n)
	if d.Unsure {
		panic(l.Unsupported("a variable that may be an error, where something else decides without it,"))
	}
	return read.Choice(d.All().Simplify(), j, read.TypeError(name))
}

// valueNode is a value, which is an error where a variable in it is one, whatever of it is
// read.
func valueNode(l *read.Lowering, n *policy.Node) read.Operand {
	value := Node(l, n)
	if value.Form != read.HashForm && value.Form != read.MultiForm {
		return value
	}
	return whereFilledBy(l, n, "value", value.Undemanding())
}

// noVariableKeys refuses a value with a variable in a key.
func noVariableKeys(l *read.Lowering, n *policy.Node) {
	if n == nil {
		return
	}
	for _, item := range n.Items {
		noVariableKeys(l, item)
	}
	for _, f := range n.Fields {
		if HasVariables(&policy.Node{Kind: policy.String, Str: f.Key, Pos: f.Pos}) {
			l.SetPos(f.Pos)
			panic(l.Unsupported("a variable in a key of a value"))
		}
		noVariableKeys(l, f.Value)
	}
}

// Filling is what the variables in the keys and texts of a value demand.
func Filling(l *read.Lowering, n *policy.Node) (d read.Demands) {
	switch {
	case n == nil:
		return d
	case n.Kind == policy.String:
		for _, part := range ParseTemplate(n.Str, n.Pos).Parts {
			if part.Var != nil {
				of, _ := read.DemandsOf(l, Variable(l, part.Var))
				d = d.And(of)
			}
		}
	}
	for _, item := range n.Items {
		d = d.And(Filling(l, item))
	}
	for _, f := range n.Fields {
		d = d.And(Filling(l, &policy.Node{Kind: policy.String, Str: f.Key, Pos: f.Pos}), Filling(l, f.Value))
	}
	return d
}

// required is j, an error where it is null too.
func required(l *read.Lowering, j read.Operand) read.Operand {
	return read.From(func(j read.Operand) read.Operand { return notNull(l, j) }, j)
}

func notNull(l *read.Lowering, j read.Operand) read.Operand {
	switch j.Form {
	case read.LitForm:
		if j.Lit == nil {
			return read.TypeError("value")
		}
	case read.ErrorForm:
		return read.TypeError(j.Hint)
	case read.PlaceForm:
		return requiredPlace(l, j)
	case read.SequenceForm:
		return read.Choice(j.S.Null(), read.TypeError("value"), j)
	case read.ChoiceForm:
		return j.With(required(l, *j.Then), required(l, *j.Els))
	}
	return j
}

func requiredPlace(l *read.Lowering, j read.Operand) read.Operand {
	switch {
	case j.V.Never:
		return read.TypeError("value")
	case j.V.Dynamic() && !j.Traits().Present: // and may be null
		return read.Choice(read.Present(l, j), j.PresentNow(), read.TypeError("value"))
	}
	guards := make([]read.Guard, len(j.V.Guards))
	for i, g := range j.V.Guards {
		g.Shape, g.Hard = false, true
		guards[i] = g
	}
	j.V.Guards = guards
	return j
}
