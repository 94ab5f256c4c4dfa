package jmespath

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/kvap/kvap/diag"
)

// Parse parses a bare expression, for instance a foreach list. pos is the place
// of its first character. There are no {{ }} in it: in a raw string they are text.
func Parse(text string, pos diag.Pos) (*Expr, *diag.Diagnostic) {
	if !utf8.ValidString(text) {
		return nil, newSource("", pos).errorf(0, "the expression is no valid UTF-8")
	}
	l := &lexer{src: newSource(text, pos), end: len(text)}
	if err := l.lex(); err != nil {
		return nil, err
	}
	return l.parse()
}

// parse makes a tree of the tokens. The community library knows the grammar, but
// its tree has no positions and its lexer is of a newer language. So it is given
// a stand-in for the expression: names, @ and strings are replaced by numbered
// ones, which lead back to their tokens; operators of the newer language never
// get so far.
func (l *lexer) parse() (*Expr, *diag.Diagnostic) {
	if err := l.check(); err != nil {
		return nil, err
	}
	standIn, offsets := l.standIn()
	tree, err := parsing.NewParser().Parse(standIn)
	if err != nil {
		return nil, l.unexpected(offsets, err)
	}
	e, bad := l.convert(tree, false)
	if bad != nil {
		return nil, bad
	}
	place(e, l.src.at(l.tokens[0].offset))
	return e, nil
}

// check finds what the stand-in would hide.
func (l *lexer) check() *diag.Diagnostic {
	for i, t := range l.tokens {
		if t.kind == current && i > 0 && l.tokens[i-1].is(".") {
			return l.src.errorf(t.offset, "unexpected @ after a dot; use a pipe")
		}
	}
	return nil
}

func (t token) is(text string) bool { return t.kind == punctuation && t.text == text }

// standIn gives the text for the library, and the offset of each token in it.
func (l *lexer) standIn() (string, []int) {
	var b strings.Builder
	offsets := make([]int, len(l.tokens))
	for i, t := range l.tokens {
		offsets[i] = b.Len()
		switch t.kind {
		case name, quoted, current:
			b.WriteString("t" + strconv.Itoa(i))
		case literal, raw:
			b.WriteString("`" + strconv.Itoa(i) + "`")
		default:
			b.WriteString(t.text)
		}
		b.WriteByte(' ')
	}
	return b.String(), offsets
}

// unexpected turns a syntax error of the stand-in into one of the source.
func (l *lexer) unexpected(offsets []int, err error) *diag.Diagnostic {
	at := len(l.tokens)
	if syntax, ok := errors.AsType[parsing.SyntaxError](err); ok {
		// A literal's offset is behind its backquote.
		i, exact := slices.BinarySearch(offsets, syntax.Offset)
		if !exact && i > 0 && l.tokens[i-1].offset >= 0 && offsets[i-1]+1 == syntax.Offset {
			i--
		}
		at = i
	}
	if at < len(l.tokens) {
		return l.src.errorf(l.tokens[at].offset, "unexpected %s in the expression", l.tokens[at].text)
	}
	if len(l.tokens) == 0 {
		return l.src.errorf(l.at, "the expression is empty")
	}
	return l.src.errorf(l.end, "the expression is incomplete")
}

// standing is the token that a numbered name leads back to.
func (l *lexer) standing(name any) token {
	i, _ := strconv.Atoi(strings.TrimPrefix(name.(string), "t"))
	return l.tokens[i]
}

// convert makes an Expr of the library's node. argument tells whether the node
// is a function argument, the one place for an &expression.
func (l *lexer) convert(n parsing.ASTNode, argument bool) (*Expr, *diag.Diagnostic) {
	e := &Expr{}
	switch n.NodeType {
	case parsing.ASTIdentity:
		return &Expr{Op: Current}, nil
	case parsing.ASTField:
		return l.leaf(l.standing(n.Value)), nil
	case parsing.ASTLiteral:
		return l.leaf(l.tokens[int(n.Value.(float64))]), nil
	case parsing.ASTFunctionExpression:
		t := l.standing(n.Value)
		if t.kind != name {
			return nil, l.src.errorf(t.offset, "%s cannot be called; a function's name is a plain word", t.text)
		}
		e.Op, e.Pos, e.Name, e.Func = Call, l.src.at(t.offset), t.text, FuncNamed(t.text)
	case parsing.ASTIndexExpression:
		return l.index(n)
	case parsing.ASTMultiSelectHash:
		return l.multiHash(n)
	case parsing.ASTExpRef:
		if !argument {
			return nil, l.misplaced(n, "an &expression can only be an argument of a function")
		}
		e.Op = ExpRef
	case parsing.ASTComparator:
		e.Op, e.Comparator = Compare, comparator(n.Value.(parsing.TokType))
	default:
		op, ok := simple(n)
		if !ok {
			return nil, l.misplaced(n, "there are no arithmetic operators; use add(), subtract(), multiply(), divide() or modulo()")
		}
		e.Op = op
	}
	for _, child := range n.Children {
		arg, err := l.convert(child, e.Op == Call)
		if err != nil {
			return nil, err
		}
		e.Args = append(e.Args, arg)
	}
	return e.placed(), nil
}

// simple maps the nodes that hold nothing but their children.
func simple(n parsing.ASTNode) (Op, bool) {
	switch n.NodeType {
	case parsing.ASTSubexpression:
		return Sub, true
	case parsing.ASTFlatten:
		return Flatten, true
	case parsing.ASTProjection:
		return Projection, true
	case parsing.ASTValueProjection:
		return ValueProjection, true
	case parsing.ASTFilterProjection:
		return Filter, true
	case parsing.ASTMultiSelectList:
		return MultiList, true
	case parsing.ASTPipe:
		return Pipe, true
	case parsing.ASTOrExpression:
		return Or, true
	case parsing.ASTAndExpression:
		return And, true
	case parsing.ASTNotExpression:
		return Not, true
	default:
		return 0, false
	}
}

func (l *lexer) leaf(t token) *Expr {
	e := &Expr{Pos: l.src.at(t.offset)}
	switch t.kind {
	case current:
		e.Op = Current
	case name:
		e.Op, e.Name = Field, t.text
	case quoted:
		e.Op, e.Dynamic = Field, t.template
		if t.template == nil {
			e.Name = t.value.(string)
		}
	case raw:
		e.Op, e.Value = Literal, t.value
		if t.template != nil {
			e.Op, e.Text = RawString, t.template
		}
	default:
		e.Op, e.Value, e.Text = Literal, t.value, t.template
	}
	return e
}

func (l *lexer) index(n parsing.ASTNode) (*Expr, *diag.Diagnostic) {
	left, err := l.convert(n.Children[0], false)
	if err != nil {
		return nil, err
	}
	e := &Expr{Op: Index, Args: []*Expr{left}}
	switch v := n.Children[1].Value.(type) {
	case int:
		e.Num = v
	case []*int:
		e.Op, e.Start, e.Stop, e.Step = Slice, v[0], v[1], v[2]
	}
	return e.placed(), nil
}

func (l *lexer) multiHash(n parsing.ASTNode) (*Expr, *diag.Diagnostic) {
	e := &Expr{Op: MultiHash, Pos: l.src.at(l.standing(n.Children[0].Value).offset)}
	for _, pair := range n.Children {
		t := l.standing(pair.Value)
		switch {
		case t.kind == current:
			return nil, l.src.errorf(t.offset, "@ is no key; write \"@\"")
		case t.template != nil:
			return nil, l.src.errorf(t.offset, "a key of { } cannot hold a variable")
		}
		value, err := l.convert(pair.Children[0], false)
		if err != nil {
			return nil, err
		}
		e.Keys = append(e.Keys, t.value.(string))
		e.Args = append(e.Args, value)
	}
	return e, nil
}

// placed gives an expression without a place that of its first operand that has
// one: as near to its own start as can be known.
func (e *Expr) placed() *Expr {
	for _, arg := range e.Args {
		if e.Pos != (diag.Pos{}) {
			break
		}
		e.Pos = arg.Pos
	}
	return e
}

// place gives what is still without a place, such as the implied @ of [0], that
// of its parent.
func place(e *Expr, parent diag.Pos) {
	if e.Pos == (diag.Pos{}) {
		e.Pos = parent
	}
	for _, arg := range e.Args {
		place(arg, e.Pos)
	}
}

// misplaced is an error at a node that is not converted.
func (l *lexer) misplaced(n parsing.ASTNode, message string) *diag.Diagnostic {
	for {
		switch n.NodeType {
		case parsing.ASTField, parsing.ASTFunctionExpression, parsing.ASTKeyValPair:
			return l.src.errorf(l.standing(n.Value).offset, "%s", message)
		case parsing.ASTLiteral:
			return l.src.errorf(l.tokens[int(n.Value.(float64))].offset, "%s", message)
		default:
		}
		if len(n.Children) == 0 {
			return l.src.errorf(l.tokens[0].offset, "%s", message)
		}
		n = n.Children[0]
	}
}
