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
	docChain // a.b.c: of its kids, all but the first may begin a line where they have no room
	docLinks // the rest of a chain
)

func textDoc(s string) doc   { return doc{kind: docText, text: s} }
func cat(ds ...doc) doc      { return doc{kind: docCat, kids: ds} }
func groupDoc(ds ...doc) doc { return doc{kind: docGroup, kids: ds} }
func nest(ds ...doc) doc     { return doc{kind: docNest, kids: ds} }
func line() doc              { return doc{kind: docBreak, text: " "} }
func softline() doc          { return doc{kind: docBreak} }
func paren(d doc) doc        { return cat(textDoc("("), d, textDoc(")")) }
func (d doc) flat() string   { var b strings.Builder; d.writeFlat(&b); return b.String() }

// join puts the separator behind all but the last, and a break behind it.
func join(ds []doc, sep string) []doc {
	out := make([]doc, 0, 3*len(ds))
	for i, d := range ds {
		out = append(out, d)
		if i < len(ds)-1 {
			out = append(out, textDoc(sep), line())
		}
	}
	return out
}

// fill puts as many elements on a line as fit.
func fill(ds []doc) []doc {
	out := make([]doc, 0, len(ds))
	for i, d := range ds {
		if i < len(ds)-1 {
			d = cat(d, textDoc(","))
		}
		if i > 0 {
			d = groupDoc(line(), d)
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
	hung  bool // of links: the chain has begun a line already
}

// layout breaks d into lines of at most width columns, where it can be broken.
func (d doc) layout(width int) string {
	var b strings.Builder
	var scratch []cell
	col := 0
	newLine := func(depth int) {
		b.WriteByte('\n')
		b.WriteString(strings.Repeat(" ", depth))
		col = depth
	}
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
				newLine(c.depth)
			}
			continue
		case docLinks:
			if len(c.doc.kids) == 0 {
				continue
			}
			link, rest := cell{doc: c.doc.kids[0], depth: c.depth, flat: c.flat}, c
			next := c.depth + indent
			if c.hung {
				next = c.depth
			}
			rest.doc.kids = rest.doc.kids[1:]
			stack = append(stack, rest)
			if !c.flat && !fits(width-col, link, stack, &scratch) && fits(width-next, link, stack, &scratch) {
				newLine(next)
				link.depth, stack[len(stack)-1].depth, stack[len(stack)-1].hung = next, next, true
			}
			stack = append(stack, link)
			continue
		case docNest:
			c.depth += indent
		case docGroup:
			if !c.flat {
				c.flat = true
				c.flat = fits(width-col, c, stack, &scratch)
			}
		}
		stack = c.push(stack)
	}
	return b.String()
}

// push puts the parts of c on the stack, the first on top.
func (c cell) push(stack []cell) []cell {
	if c.doc.kind == docChain {
		stack = append(stack, cell{doc: doc{kind: docLinks, kids: c.doc.kids[1:]}, depth: c.depth, flat: c.flat})
		c.doc.kids = c.doc.kids[:1]
	}
	for i := len(c.doc.kids) - 1; i >= 0; i-- {
		stack = append(stack, cell{doc: c.doc.kids[i], depth: c.depth, flat: c.flat})
	}
	return stack
}

// fits tells that c and what follows up to the next line end, or to where one may be, have room. Its
// stack is kept in scratch, to be used again.
func fits(room int, c cell, rest []cell, scratch *[]cell) bool {
	stack := append((*scratch)[:0], c)
	defer func() { *scratch = stack }()
	for room >= 0 {
		if len(stack) == 0 {
			if len(rest) == 0 {
				return true
			}
			stack = append(stack, rest[len(rest)-1])
			rest = rest[:len(rest)-1]
		}
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch c.doc.kind {
		case docBreak:
			if !c.flat {
				return true
			}
			room -= len(c.doc.text)
		case docLinks:
			if !c.flat && len(c.doc.kids) > 0 {
				return true
			}
			stack = c.push(stack)
		case docText:
			room -= utf8.RuneCountInString(c.doc.text)
		default:
			stack = c.push(stack)
		}
	}
	return false
}
