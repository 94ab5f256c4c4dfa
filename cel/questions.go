package cel

import "slices"

// A Question is what an expression asks of a request on the way to its value. Inside of a loop it
// is asked of each element: then Holds tells that some element meets it and Fails that some does
// not. Elsewhere Fails is the negation of Holds.
type Question struct{ Holds, Fails Bool }

// Questions are what v asks, from the outside in, each by itself and once. So
//
//	a == 1 && list.all(x, x.b || x.c)
//
// asks a == 1, list.all(...), and of some x whether x.b, and whether x.c.
func (v Value) Questions() []Question {
	q := &questioner{}
	if !v.IsZero() {
		q.ask(v.n, func(b Bool) Bool { return b })
	}
	return q.found
}

type questioner struct{ found []Question }

func (q *questioner) add(n *node, within func(Bool) Bool) {
	one := Question{within(Bool{Value{n}}), within(Not(Bool{Value{n}}))}
	if !slices.ContainsFunc(q.found, func(have Question) bool { return Equal(have.Holds.Value, one.Holds.Value) }) {
		q.found = append(q.found, one)
	}
}

// ask is for a node that is true or false; within makes a question of its surroundings of one about
// the node.
func (q *questioner) ask(n *node, within func(Bool) Bool) {
	switch n.op {
	case opBool:
	case opAnd, opOr, opNot, opCond:
		for _, a := range n.args {
			q.ask(a, within)
		}
	default:
		q.add(n, within)
		q.look(n, within)
	}
}

// look looks for questions in the parts of a node.
func (q *questioner) look(n *node, within func(Bool) Bool) {
	switch {
	case n.op == opCond:
		q.ask(n.args[0], within)
		q.look(n.args[1], within)
		q.look(n.args[2], within)
	case n.op == opMacro:
		q.look(n.args[0], within)
		inside := func(b Bool) Bool {
			return within(Bool{Value{newNode(node{op: opMacro, name: string(MacroExists), vars: n.vars, args: []*node{n.args[0], b.n}})}})
		}
		switch MacroName(n.name) {
		case MacroAll, MacroExists, MacroExistsOne, MacroExistsOneNew, MacroFilter:
			q.ask(n.args[1], inside)
		case MacroMap:
			q.look(n.args[1], inside)
		}
	default:
		for _, a := range n.args {
			q.look(a, within)
		}
	}
}
