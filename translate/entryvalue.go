package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
)

// whereFilledBy is j, and an error of a context entry where a variable in a value is one.
func (l *lowering) whereFilledBy(n *policy.Node, name string, j operand) operand {
	c := l.fills(n)
	if c.IsTrue() {
		return j
	}
	return choice(c, j, typeError(name))
}

// fills is: no variable in a value or a default is an error.
func (l *lowering) fills(n *policy.Node) cel.Bool {
	needed := l.collected(func() { l.eachVariable(n, func(j operand) { l.ask(j) }) })
	if needed.unsure {
		panic(l.unsupported("a variable that may be an error, where something else decides without it,"))
	}
	return needed.all().Simplify()
}

// valueNode is a value, which is an error where a variable in it is one, whatever of it is
// read.
func (l *lowering) valueNode(n *policy.Node) operand {
	var value operand
	needed := l.collected(func() { value = l.node(n) })
	if value.form != hashForm && value.form != multiForm {
		l.needAll(needed)
		return value
	}
	return l.whereFilledBy(n, "value", value)
}

// eachVariable visits the variables in the texts of a value.
func (l *lowering) eachVariable(n *policy.Node, visit func(operand)) {
	if n == nil {
		return
	}
	if n.Kind == policy.String {
		for _, part := range l.parseTemplate(n.Str, n.Pos).Parts {
			if part.Var != nil {
				visit(l.variable(part.Var))
			}
		}
	}
	for _, item := range n.Items {
		l.eachVariable(item, visit)
	}
	for _, f := range n.Fields {
		if hasVariables(&policy.Node{Kind: policy.String, Str: f.Key, Pos: f.Pos}) {
			l.setPos(f.Pos)
			panic(l.unsupported("a variable in a key of a value"))
		}
		l.eachVariable(f.Value, visit)
	}
}

// required is j, an error where it is null too.
func (l *lowering) required(j operand) operand {
	switch j.form {
	case litForm:
		if j.lit == nil {
			return typeError("value")
		}
	case errorForm:
		return typeError(j.hint)
	case placeForm:
		return l.requiredPlace(j)
	case sequenceForm:
		return choice(j.s.null(), typeError("value"), j)
	case choiceForm:
		return j.with(l.required(*j.then), l.required(*j.els))
	}
	return j
}

func (l *lowering) requiredPlace(j operand) operand {
	switch {
	case j.v.never:
		return typeError("value")
	case j.v.dynamic() && !j.traits().present: // and may be null
		return choice(l.present(j), j.presentNow(), typeError("value"))
	}
	guards := make([]guard, len(j.v.guards))
	for i, g := range j.v.guards {
		g.shape, g.hard = false, true
		guards[i] = g
	}
	j.v.guards = guards
	return j
}
