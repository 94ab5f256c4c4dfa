package check

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// madeSource is that of what was just made of a policy.
type madeSource struct {
	objects interface {
		MadeFrom(field string) (diag.Pos, []int)
	}
}

func (s madeSource) at(field string, _, _ int) diag.Pos {
	pos, _ := s.objects.MadeFrom(field)
	return pos
}

// writtenSource is a file, whoever wrote it.
type writtenSource struct {
	data  []byte
	root  *policy.Node
	nodes map[string]*policy.Node
}

// nodesOf are the values of a document by their paths in it.
func nodesOf(root *policy.Node) map[string]*policy.Node {
	nodes := map[string]*policy.Node{}
	var add func(*policy.Node)
	add = func(n *policy.Node) {
		nodes[strings.TrimPrefix(strings.TrimPrefix(n.Pos.Path, root.Pos.Path), ".")] = n
		for _, f := range n.Fields {
			add(f.Value)
		}
		for _, item := range n.Items {
			add(item)
		}
	}
	add(root)
	return nodes
}

// at is the place of a field, or of what would hold it where it is not there.
func (s writtenSource) at(field string, line, column int) diag.Pos {
	path := field
	for {
		if n := s.nodes[path]; n != nil {
			pos := n.Pos
			if path == field && line > 0 && n.Kind == policy.String {
				pos.Line, pos.Col = locate(s.data, n.Pos, n.Str, line, column)
			}
			pos.Path = field
			return pos
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			pos := s.root.Pos
			pos.Path = field
			return pos
		}
		path = path[:cut]
	}
}

// locate is the place in a file of a line and column of a string's value, both from
// 1 and in characters. YAML may indent a text, fold its lines and escape characters;
// but all that is no blank stands in the file in the same order. Where that is not
// so, the place is where the string begins.
func locate(data []byte, start diag.Pos, value string, line, column int) (int, int) {
	c := cursor{rest: bytes.TrimPrefix(data, []byte("\ufeff")), line: 1, col: 1}
	for c.line < start.Line && c.next() {
	}
	for c.col < start.Col && c.line == start.Line && c.next() {
	}
	if r := c.rune(); r == '|' || r == '>' {
		for c.line == start.Line && c.next() {
		}
	}
	at, col := 1, 1
	for _, r := range value {
		reached := at == line && col >= column
		if !isBlank(r) {
			for c.rune() != r {
				if !isBlank(c.rune()) && !strings.ContainsRune(`"'\#`, c.rune()) || !c.next() {
					return start.Line, start.Col
				}
			}
			if reached {
				return c.line, c.col
			}
			c.next()
		}
		col++
		if r == '\n' {
			at, col = at+1, 1
		}
	}
	return c.line, c.col // the end of the text
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }

// A cursor goes through a file.
type cursor struct {
	rest      []byte
	line, col int
}

func (c *cursor) rune() rune {
	r, _ := utf8.DecodeRune(c.rest)
	return r
}

// next goes on by a character; it cannot at the end.
func (c *cursor) next() bool {
	r, size := utf8.DecodeRune(c.rest)
	if size == 0 {
		return false
	}
	c.rest = c.rest[size:]
	c.col++
	if r == '\n' {
		c.line, c.col = c.line+1, 1
	}
	return true
}
