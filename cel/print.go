package cel

import (
	"slices"
	"strconv"
	"strings"
)

// String is the expression on one line. The zero Value is the empty string.
func (v Value) String() string {
	if v.IsZero() {
		return ""
	}
	return print(v.n).flat()
}

// Text is the expression broken into lines of at most width columns, as far as
// names and literals allow.
func (v Value) Text(width int) string {
	if v.IsZero() {
		return ""
	}
	return print(v.n).layout(width)
}

// The precedences of CEL's grammar, the loosest first.
const (
	precCond = iota
	precOr
	precAnd
	precRelation
	precSum
	precProduct
	precUnary
	precMember
)

func (n *node) prec() int {
	switch n.op {
	case opCond:
		return precCond
	case opOr:
		return precOr
	case opAnd:
		return precAnd
	case opBinary:
		switch n.operator() {
		case Plus, Minus:
			return precSum
		case Times, Over, Modulo:
			return precProduct
		}
		return precRelation
	case opNot, opNeg:
		return precUnary
	case opInt, opDouble:
		if strings.HasPrefix(n.atom(), "-") {
			return precUnary
		}
	}
	return precMember
}

// operand prints n with parentheses if it binds looser than least.
func operand(n *node, least int) doc {
	if n.prec() < least {
		return groupDoc(textDoc("("), nest(softline(), print(n)), softline(), textDoc(")"))
	}
	return print(n)
}

// print is the one place that knows how each node is written.
func print(n *node) doc {
	switch n.op {
	case opSelect, opOpt, opIndex, opOptIdx, opMember, opMacro:
		return path(n)
	case opHas:
		return cat(textDoc("has("), operand(n.args[0], precMember), textDoc("."+n.name+")"))
	case opCall:
		return cat(textDoc(n.name), arguments(n.args))
	case opList:
		if len(n.args) == 1 && n.args[0].op == opMap && len(n.args[0].args) > 0 {
			return cat(textDoc("["), print(n.args[0]), textDoc("]"))
		}
		ds := docs(n.args)
		if slices.ContainsFunc(n.args, func(a *node) bool { return len(a.args) > 0 }) {
			return enclosed("[", join(ds, ","), "]")
		}
		return enclosed("[", fill(ds), "]")
	case opMap:
		var entries []doc
		for i := 0; i < len(n.args); i += 2 {
			entries = append(entries, cat(print(n.args[i]), textDoc(": "), print(n.args[i+1])))
		}
		return enclosed("{", join(entries, ","), "}")
	case opStruct:
		var fields []doc
		for i, a := range n.args {
			field := n.vars[i] + ": "
			if a.op == opMaybe {
				field, a = "?"+field, a.args[0]
			}
			fields = append(fields, cat(textDoc(field), print(a)))
		}
		return enclosed(n.name+"{", join(fields, ","), "}")
	case opMaybe:
		return cat(textDoc("?"), print(n.args[0]))
	case opAnd, opOr:
		return andOrDoc(n)
	case opNot:
		return cat(textDoc("!"), operand(n.args[0], precMember))
	case opNeg: // what would otherwise be read as one literal, or as no negation at all, is in parentheses
		if a := n.args[0]; a.op == opInt || a.op == opDouble {
			return cat(textDoc("-"), paren(print(a)))
		}
		return cat(textDoc("-"), operand(n.args[0], precMember))
	case opBinary:
		return binary(n)
	case opCond:
		return conditional(n)
	}
	return textDoc(n.atom())
}

// atom is the text of a node without parts.
func (n *node) atom() string {
	switch n.op {
	case opIdent:
		return n.name
	case opBool:
		return strconv.FormatBool(n.lit.(bool))
	case opInt:
		return strconv.FormatInt(n.lit.(int64), 10)
	case opUint:
		return strconv.FormatUint(n.lit.(uint64), 10) + "u"
	case opDouble:
		return number(n.lit.(float64))
	case opString:
		return quote(n.lit.(string))
	case opBytes:
		return quoteBytes(n.lit.(string))
	}
	return "null"
}

// path may begin a line with each selection and call but the first.
func path(n *node) doc {
	var links []doc // the last one first
	var behind doc  // what is in brackets goes with what is before it, and so does .orValue()
	for {
		var link doc
		switch n.op {
		case opSelect:
			link = textDoc("." + n.name)
		case opOpt:
			link = textDoc(".?" + n.name)
		case opMember:
			link = cat(textDoc("."+n.name), arguments(n.args[1:]))
			if n.isOrValue() {
				link, behind = doc{}, cat(link, behind)
			}
		case opMacro:
			link = macro(n)
		case opIndex:
			behind = cat(textDoc("["), print(n.args[1]), textDoc("]"), behind)
		case opOptIdx:
			behind = cat(textDoc("[?"), print(n.args[1]), textDoc("]"), behind)
		default:
			ds := []doc{cat(operand(n, precMember), behind)}
			if len(links) > 0 {
				last := len(links) - 1
				ds, links = []doc{cat(ds[0], links[last])}, links[:last]
			}
			for _, l := range slices.Backward(links) {
				ds = append(ds, l)
			}
			return doc{kind: docChain, kids: ds}
		}
		if n.op != opIndex && n.op != opOptIdx && !n.isOrValue() {
			links, behind = append(links, cat(link, behind)), doc{}
		}
		n = n.args[0]
	}
}

func docs(ns []*node) []doc {
	ds := make([]doc, len(ns))
	for i, n := range ns {
		ds[i] = print(n)
	}
	return ds
}

func arguments(ns []*node) doc {
	if len(ns) == 1 && hugs(ns[0]) {
		return paren(print(ns[0]))
	}
	if last := len(ns) - 1; last > 0 && makesMaps(ns[last]) && !slices.ContainsFunc(ns[:last], func(n *node) bool { return n.prec() < precMember }) {
		return paren(cat(textDoc(flatly(ns[:last])+", "), print(ns[last])))
	}
	return enclosed("(", join(docs(ns), ","), ")")
}

// makesMaps tells of a list of maps that are made, as objects are.
func makesMaps(n *node) bool {
	return n.op == opList && slices.ContainsFunc(n.args, func(a *node) bool { return a.op == opMap && len(a.args) > 0 })
}

// flatly is some arguments on one line.
func flatly(ns []*node) string {
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = print(n).flat()
	}
	return strings.Join(out, ", ")
}

// hugs tells that n opens a bracket of its own, which is where it may break.
func hugs(n *node) bool {
	switch n.op {
	case opList, opMap, opStruct, opCall:
		return true
	}
	return len(n.args) == 0
}

func enclosed(open string, ds []doc, end string) doc {
	if len(ds) == 0 {
		return textDoc(open + end)
	}
	return groupDoc(textDoc(open), nest(append([]doc{softline()}, ds...)...), softline(), textDoc(end))
}

// macro keeps the variables on the line of the list.
func macro(n *node) doc {
	open := "." + n.name + "(" + strings.Join(n.vars, ", ") + ","
	body := append([]doc{line()}, join(docs(n.args[1:]), ",")...)
	return cat(textDoc(open), groupDoc(nest(body...), softline()), textDoc(")"))
}

// andOrDoc breaks behind the operators. A chain in a chain is indented,
// so that lines of one depth are the terms of one operator.
func andOrDoc(n *node) doc {
	sign := map[op]string{opAnd: " &&", opOr: " ||"}[n.op]
	ds := make([]doc, len(n.args))
	for i, a := range n.args {
		ds[i] = operand(a, n.prec()+1)
		if n.op == opOr && a.op == opAnd {
			ds[i] = nest(ds[i])
		}
	}
	return groupDoc(join(ds, sign)...)
}

// binary prints operators of one precedence that follow one another as one chain.
// A comparison of a comparison has parentheses, though the grammar needs none on
// the left: nobody reads a == b == c right.
func binary(n *node) doc {
	prec := n.prec()
	var ds []doc
	var walk func(*node)
	walk = func(m *node) {
		l, r := m.args[0], m.args[1]
		switch {
		case prec == precRelation:
			ds = append(ds, operand(l, prec+1))
		case l.op == opBinary && l.prec() == prec:
			walk(l)
		default:
			ds = append(ds, operand(l, prec))
		}
		ds = append(ds, textDoc(" "+m.name))
		if r.op == opList || r.op == opMap || prec == precRelation && isShort(r) {
			ds = append(ds, textDoc(" "), print(r)) // breaks by itself, or is better behind what does
		} else {
			ds = append(ds, nest(line(), operand(r, prec+1)))
		}
	}
	walk(n)
	return groupDoc(ds...)
}

// isShort tells of a literal that needs no line of its own.
func isShort(n *node) bool {
	return len(n.args) == 0 && n.op != opIdent && len(n.atom()) <= 10
}

// conditional puts each branch on a line of its own; a chain of them stays at one depth.
func conditional(n *node) doc {
	var ds []doc
	head := operand(n.args[0], precOr)
	for {
		ds = append(ds, line(), textDoc("? "), nest(operand(n.args[1], precOr)), line(), textDoc(": "))
		if n.args[2].op != opCond {
			break
		}
		n = n.args[2]
		ds = append(ds, nest(operand(n.args[0], precOr)))
	}
	ds = append(ds, nest(print(n.args[2])))
	return groupDoc(head, nest(ds...))
}
