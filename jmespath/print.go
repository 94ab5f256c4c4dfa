package jmespath

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// The powers with which operators bind, as in the grammar of go-jmespath: what
// follows an expression belongs to its last operand if it binds tighter than
// the operator before that operand.
const (
	pipePower    = 1
	orPower      = 2
	andPower     = 3
	comparePower = 5
	flattenPower = 9
	starPower    = 20
	filterPower  = 21
	dotPower     = 40
	notPower     = 45
	indexPower   = 55
	closed       = 100
)

// String prints an expression such that Parse gives it back, with parentheses
// where they are needed only. Variables in strings and names stand as written.
func (e *Expr) String() string {
	if e == nil {
		return ""
	}
	return e.print().text
}

// A printed expression knows how it binds: left is the weakest operator that is
// not in brackets; right the power that a following operator must exceed to be
// taken by the last operand.
type printed struct {
	text        string
	left, right int
}

// leftOf is p as the left operand of an operator.
func (p printed) leftOf(power int) printed {
	if power > p.right {
		return p.grouped()
	}
	return p
}

// within is p as an operand that ends before operators of the given power.
func (p printed) within(power int) printed {
	if p.left <= power {
		return p.grouped()
	}
	return p
}

func (p printed) grouped() printed { return printed{"(" + p.text + ")", closed, closed} }

func (e *Expr) print() printed {
	switch e.Op {
	case Current:
		return printed{"@", closed, closed}
	case Field:
		return printed{e.fieldText(), closed, closed}
	case Literal:
		if e.Text != nil {
			return printed{"`" + e.Text.Text + "`", closed, closed}
		}
		return printed{literalText(e.Value), closed, closed}
	case RawString:
		return printed{"'" + e.Text.Text + "'", closed, closed}
	case Call:
		return printed{e.Name + "(" + list(e.Args) + ")", closed, closed}
	case MultiList:
		return printed{multiListText(e.Args), closed, closed}
	case MultiHash:
		return printed{e.multiHashText(), closed, closed}
	case ExpRef:
		p := e.Args[0].print()
		return printed{"&" + p.text, closed, 0}
	case Not:
		p := e.Args[0].print().within(notPower)
		return printed{"!" + p.text, closed, min(notPower, p.right)}
	case Pipe:
		return e.binary(" | ", pipePower)
	case Or:
		return e.binary(" || ", orPower)
	case And:
		return e.binary(" && ", andPower)
	case Compare:
		return e.binary(" "+e.Comparator.String()+" ", comparePower)
	case Sub:
		return e.sub()
	case Index:
		return e.postfix("["+strconv.Itoa(e.Num)+"]", indexPower)
	case Slice:
		return e.postfix(e.sliceText(), indexPower)
	case Flatten:
		return e.postfix("[]", flattenPower)
	default:
		return e.projection()
	}
}

func (e *Expr) binary(operator string, power int) printed {
	l := e.Args[0].print().leftOf(power)
	r := e.Args[1].print().within(power)
	return printed{l.text + operator + r.text, min(power, l.left), min(power, r.right)}
}

// postfix prints what follows its left operand directly. An operand @ is left
// out: [0] is @[0], and only the former can follow a projection.
func (e *Expr) postfix(text string, power int) printed {
	if e.Args[0].Op == Current {
		return printed{text, closed, closed}
	}
	l := e.Args[0].print().leftOf(power)
	return printed{l.text + text, min(power, l.left), closed}
}

func (e *Expr) sub() printed {
	l := e.Args[0].print().leftOf(dotPower)
	right := e.Args[1]
	r := right.print()
	p := printed{l.text + "." + r.text, min(dotPower, l.left), closed}
	if right.Op != MultiList && right.Op != MultiHash {
		p.right = min(dotPower, r.right)
	}
	return p
}

// projection prints Projection, ValueProjection and Filter.
func (e *Expr) projection() printed {
	p, power := e.projector()
	right := e.Args[1]
	switch r := right.print(); {
	case right.Op == Current:
		// Whatever can follow a projection is taken as its right side.
		p.right = flattenPower
	case right.Op == MultiList, right.Op == MultiHash:
		p.text += "." + r.text
		p.right = closed
	case strings.HasPrefix(r.text, "["):
		p.text += r.text
		p.right = min(power, r.right)
	default:
		p.text += "." + r.text
		p.right = min(power, r.right)
	}
	return p
}

// projector prints a projection without its right side, and gives the power
// with which the right side binds.
func (e *Expr) projector() (printed, int) {
	left := e.Args[0]
	switch {
	case e.Op == Filter:
		return e.postfix("[?"+e.Args[2].print().text+"]", filterPower), filterPower
	case e.Op == ValueProjection && left.Op == Current:
		return printed{"*", closed, closed}, starPower
	case e.Op == ValueProjection:
		l := left.print().leftOf(dotPower)
		return printed{l.text + ".*", min(dotPower, l.left), closed}, dotPower
	case left.Op == Flatten:
		return left.print(), flattenPower
	case left.Op == Slice:
		return left.print(), starPower
	}
	return e.postfix("[*]", indexPower), starPower
}

func (e *Expr) sliceText() string {
	var b strings.Builder
	part := func(n *int) {
		if n != nil {
			b.WriteString(strconv.Itoa(*n))
		}
	}
	b.WriteByte('[')
	part(e.Start)
	b.WriteByte(':')
	part(e.Stop)
	if e.Step != nil {
		b.WriteByte(':')
		part(e.Step)
	}
	b.WriteByte(']')
	return b.String()
}

// multiListText keeps [(*)], the list of all values, apart from the projection [*].
func multiListText(args []*Expr) string {
	text := list(args)
	if text == "*" {
		text = "(*)"
	}
	return "[" + text + "]"
}

func (e *Expr) multiHashText() string {
	pairs := make([]string, len(e.Args))
	for i, arg := range e.Args {
		pairs[i] = nameText(e.Keys[i]) + ": " + arg.print().text
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

func list(args []*Expr) string {
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = arg.print().text
	}
	return strings.Join(texts, ", ")
}

func (e *Expr) fieldText() string {
	if e.Dynamic != nil {
		return `"` + e.Dynamic.Text + `"`
	}
	return nameText(e.Name)
}

func nameText(name string) string {
	plain := name != "" && !isDigit(name[0])
	for i := range len(name) {
		plain = plain && (isNameStart(name[i]) || isDigit(name[i]))
	}
	if plain {
		return name
	}
	return jsonText(name)
}

// literalText prints a string as '...', unless it ends in a backslash, which
// would protect the quote, or holds braces, which could be taken for a variable.
func literalText(v any) string {
	if s, ok := v.(string); ok && !strings.HasSuffix(s, `\`) && !strings.Contains(s, "{{") {
		return "'" + strings.ReplaceAll(s, "'", `\'`) + "'"
	}
	return "`" + strings.ReplaceAll(jsonText(v), "`", `\u0060`) + "`"
}

func jsonText(v any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
