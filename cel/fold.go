package cel

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// binary folds comparisons and sums of literals.
func (s simplifier) binary(n *node) *node {
	x, y := n.args[0], n.args[1]
	switch n.operator() {
	case In:
		return s.in(n)
	case Plus:
		if x.op == opString && y.op == opString {
			return String(x.lit.(string) + y.lit.(string)).n
		}
		// 'a' + (y + z): where one of them is not a string, either form is an error
		if y.operator() == Plus && (x.isText() || y.isText()) {
			return Value{x}.Plus(Value{y.args[0]}).Plus(Value{y.args[1]}).n
		}
		// z + 'a' + 'b': where z is not a string, either form is an error
		if x.operator() == Plus && x.args[1].op == opString && y.op == opString {
			return Value{x.args[0]}.Plus(String(x.args[1].lit.(string) + y.lit.(string))).n
		}
		return foldInt(n, (*big.Int).Add)
	case Minus:
		return foldInt(n, (*big.Int).Sub)
	case Times:
		return foldInt(n, (*big.Int).Mul)
	case Equals, Differs, Less, LessEqual, Greater, GreaterEqual:
		return foldCompare(n)
	}
	return n
}

// isText tells of a literal string, and of a sum that has one.
func (n *node) isText() bool {
	return n.op == opString || n.operator() == Plus && (n.args[0].isText() || n.args[1].isText())
}

// in simplifies membership in a literal list.
func (s simplifier) in(n *node) *node {
	x, l := n.args[0], n.args[1]
	switch {
	case l.op != opList:
	case len(l.args) == 0 && s.isTotal(x):
		return False().n
	case len(l.args) == 1 && l.args[0].op != opMaybe:
		return newNode(node{op: opBinary, name: string(Equals), args: []*node{x, l.args[0]}})
	case x.op == opString && areTexts(l.args):
		return Lit(slices.ContainsFunc(l.args, func(a *node) bool { return equal(a, x) })).n
	}
	return n
}

func foldInt(n *node, f func(z, x, y *big.Int) *big.Int) *node {
	x, y := n.args[0], n.args[1]
	if x.op != opInt || y.op != opInt {
		return n
	}
	z := f(new(big.Int), big.NewInt(x.lit.(int64)), big.NewInt(y.lit.(int64)))
	if !z.IsInt64() {
		return n // an error, and it stays one
	}
	return Int(z.Int64()).n
}

// foldCompare compares literals of one type.
func foldCompare(n *node) *node {
	x, y := n.args[0], n.args[1]
	if x.op != y.op {
		return n
	}
	var c int
	switch x.op {
	case opInt:
		c = cmp.Compare(x.lit.(int64), y.lit.(int64))
	case opString:
		c = cmp.Compare(x.lit.(string), y.lit.(string))
	case opBool, opNull:
		if n.operator() != Equals && n.operator() != Differs {
			return n
		}
		if !equal(x, y) {
			c = 1
		}
	default:
		return n
	}
	return Lit(n.operator().holds(c)).n
}

// foldCall folds functions of literal strings.
func foldCall(n *node) *node {
	if n.function() == FuncSize && len(n.args) == 1 && n.args[0].isEmptyList() {
		return Int(0).n
	}
	switch {
	case !areTexts(n.args):
		return n
	case n.function() == FuncSize && len(n.args) == 1:
		return Int(int64(utf8.RuneCountInString(n.args[0].lit.(string)))).n
	case n.op != opMember || len(n.args) != 2:
		return n
	}
	x, y := n.args[0].lit.(string), n.args[1].lit.(string)
	switch n.function() {
	case FuncStartsWith:
		return Lit(strings.HasPrefix(x, y)).n
	case FuncEndsWith:
		return Lit(strings.HasSuffix(x, y)).n
	case FuncContains:
		return Lit(strings.Contains(x, y)).n
	}
	return n
}
