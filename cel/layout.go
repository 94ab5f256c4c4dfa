package cel

import (
	"strings"
	"unicode/utf8"
)

// A doc is a text with places where its lines may break. It is laid out after
// Wadler's "A prettier printer": a group is on one line if it fits, else all
// breaks that are its own, and not those of a group in it, are new lines.
type doc struct {
	kind docKind
	text string // of text; of brk: what stands there when the line is not broken
	kids []doc
}

type docKind int

const (
	docText docKind = iota
	docCat
	docGroup
	docNest
	docBreak
)

func text(s string) doc    { return doc{kind: docText, text: s} }
func cat(ds ...doc) doc    { return doc{kind: docCat, kids: ds} }
func group(ds ...doc) doc  { return doc{kind: docGroup, kids: ds} }
func nest(ds ...doc) doc   { return doc{kind: docNest, kids: ds} }
func line() doc            { return doc{kind: docBreak, text: " "} }
func softline() doc        { return doc{kind: docBreak} }
func join(ds []doc) []doc  { return joinBy(ds, ",", line) }
func paren(d doc) doc      { return cat(text("("), d, text(")")) }
func parenBreak(d doc) doc { return group(text("("), nest(softline(), d), softline(), text(")")) }
func (d doc) flat() string { var b strings.Builder; d.writeFlat(&b); return b.String() }

// joinBy puts the separator behind all but the last, and a break behind it.
func joinBy(ds []doc, sep string, brk func() doc) []doc {
	out := make([]doc, 0, 3*len(ds))
	for i, d := range ds {
		out = append(out, d)
		if i < len(ds)-1 {
			out = append(out, text(sep), brk())
		}
	}
	return out
}

// fill puts as many elements on a line as fit.
func fill(ds []doc) []doc {
	out := make([]doc, 0, len(ds))
	for i, d := range ds {
		if i < len(ds)-1 {
			d = cat(d, text(","))
		}
		if i > 0 {
			d = group(line(), d)
		}
		out = append(out, d)
	}
	return out
}

func (d doc) writeFlat(b *strings.Builder) {
	b.WriteString(d.text)
	for _, k := range d.kids {
		k.writeFlat(b)
	}
}

// indent is the depth of one level, in columns.
const indent = 2

type cell struct {
	doc   doc
	depth int
	flat  bool
}

// layout breaks d into lines of at most width columns, where it can be broken.
func (d doc) layout(width int) string {
	var b strings.Builder
	var scratch []cell
	col := 0
	for stack := []cell{{doc: d}}; len(stack) > 0; {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch c.doc.kind {
		case docText:
			b.WriteString(c.doc.text)
			col += utf8.RuneCountInString(c.doc.text)
			continue
		case docBreak:
			if c.flat {
				b.WriteString(c.doc.text)
				col += len(c.doc.text)
			} else {
				b.WriteByte('\n')
				b.WriteString(strings.Repeat(" ", c.depth))
				col = c.depth
			}
			continue
		case docNest:
			c.depth += indent
		case docGroup:
			if !c.flat {
				c.flat, scratch = fits(width-col, c, stack, scratch[:0])
			}
		}
		stack = c.push(stack)
	}
	return b.String()
}

// push puts the parts of c on the stack, the first on top.
func (c cell) push(stack []cell) []cell {
	for i := len(c.doc.kids) - 1; i >= 0; i-- {
		stack = append(stack, cell{c.doc.kids[i], c.depth, c.flat})
	}
	return stack
}

// fits tells that c, on one line, and what follows up to the next line end have room. It
// takes an empty stack, and gives back what has become of that, to be emptied and used again.
func fits(room int, c cell, rest, stack []cell) (ok bool, used []cell) {
	c.flat = true
	stack = append(stack, c)
	for room >= 0 {
		if len(stack) == 0 {
			if len(rest) == 0 {
				return true, stack
			}
			stack = append(stack, rest[len(rest)-1])
			rest = rest[:len(rest)-1]
		}
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch c.doc.kind {
		case docBreak:
			if !c.flat {
				return true, stack
			}
			room -= len(c.doc.text)
		case docText:
			room -= utf8.RuneCountInString(c.doc.text)
		default:
			stack = c.push(stack)
		}
	}
	return false, stack
}
