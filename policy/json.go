package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
)

// JSON has a reader of its own: YAML's knows no surrogate pairs in escapes, and is
// slower.

// readJSON reads a chunk of one or more JSON values. It is not ok if the chunk is
// no JSON; it may still be YAML.
func (c chunk) readJSON(name string) (docs []document, ok bool) {
	j := jsonReader{file: name, text: c.text, line: c.line + 1, col: 1}
	j.dec = json.NewDecoder(bytes.NewReader(c.text))
	if isMarker(c.text, "---") {
		return nil, false
	}
	j.dec.UseNumber()
	for {
		start := j.dec.InputOffset()
		tok, pos, err := j.next("")
		if errors.Is(err, io.EOF) {
			return docs, true
		}
		if err != nil {
			return nil, false
		}
		root, err := j.value(tok, pos, 0)
		if err != nil {
			return nil, false
		}
		docs = append(docs, document{root, bytes.TrimLeft(c.text[start:j.dec.InputOffset()], " \t\r\n"), j.ds})
		j.ds = nil
	}
}

type jsonReader struct {
	file      string
	text      []byte
	dec       *json.Decoder
	at        int // the offset that line and col are of
	line, col int
	ds        diag.List
}

// next is the next token with its place.
func (j *jsonReader) next(path string) (json.Token, diag.Pos, error) {
	start := int(j.dec.InputOffset())
	tok, err := j.dec.Token()
	if err != nil {
		return nil, diag.Pos{}, err
	}
	for start < len(j.text) && bytes.IndexByte([]byte(" \t\r\n,:"), j.text[start]) >= 0 {
		start++
	}
	for j.at < start {
		r, size := utf8.DecodeRune(j.text[j.at:])
		j.at += size
		j.col++
		if r == '\n' {
			j.line++
			j.col = 1
		}
	}
	return tok, diag.Pos{File: j.file, Line: j.line, Col: j.col, Path: path}, nil
}

var errDeep = errors.New("nested too deep")

func (j *jsonReader) value(tok json.Token, pos diag.Pos, depth int) (*Node, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	n := &Node{Pos: pos}
	switch t := tok.(type) {
	case bool:
		n.Kind, n.Bool = Bool, t
	case string:
		n.Kind, n.Str = String, t
	case json.Number:
		return n, jsonNumber(n, t.String())
	case json.Delim:
		if t == '{' {
			return j.object(pos, depth)
		}
		return j.list(n, depth)
	}
	return n, nil
}

func jsonNumber(n *Node, text string) error {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		n.Kind, n.Int = Int, i
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	n.Kind, n.Float = Float, f
	settle(n)
	return nil
}

func (j *jsonReader) list(n *Node, depth int) (*Node, error) {
	n.Kind, n.Items = List, []*Node{}
	for i := 0; ; i++ {
		tok, pos, err := j.next(indexPath(n.Pos.Path, i))
		if err != nil {
			return nil, err
		}
		if tok == json.Delim(']') {
			return n, nil
		}
		item, err := j.value(tok, pos, depth+1)
		if err != nil {
			return nil, err
		}
		n.Items = append(n.Items, item)
	}
}

func (j *jsonReader) object(pos diag.Pos, depth int) (*Node, error) {
	m := newMapping(pos, 4)
	for {
		tok, keyPos, err := j.next("")
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return m.node, nil
		}
		keyPos.Path = keyPath(pos.Path, key)
		tok, valuePos, err := j.next(keyPos.Path)
		if err != nil {
			return nil, err
		}
		value, err := j.value(tok, valuePos, depth+1)
		if err != nil {
			return nil, err
		}
		if first, ok := m.set(Field{Key: key, Pos: keyPos, Value: value}, false); !ok {
			j.ds = append(j.ds, duplicate(keyPos, key, first))
		}
	}
}
