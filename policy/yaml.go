package policy

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/kvap/kvap/diag"
)

const (
	maxFile    = 10 << 20 // bytes; etcd refuses an object of 1.5 MiB
	maxAliased = 100_000  // nodes that aliases may add to a document
	maxDepth   = 1_000    // of nesting, so that recursion over nodes is safe
)

// documents splits a file and makes nodes of its documents. It goes on after a
// document that does not parse, for its neighbours can.
func documents(name string, data []byte) (docs []document, ds diag.List) {
	if d := readable(name, data); d != nil {
		return nil, diag.List{*d}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for _, c := range chunks(data) {
		cdocs, cds := c.read(name)
		docs = append(docs, cdocs...)
		ds = append(ds, cds...)
	}
	return docs, ds
}

// A document is a document that parsed, with what is wrong in it.
type document struct {
	root *Node
	ds   diag.List
}

// readable refuses what is too large or no text.
func readable(name string, data []byte) *diag.Diagnostic {
	pos := diag.Pos{File: name}
	if len(data) > maxFile {
		d := diag.Errorf(pos, diag.Unreadable, "the file has %d bytes, more than 10 MiB; no policy is that large, split the file", len(data))
		return &d
	}
	if utf8.Valid(data) {
		return nil
	}
	pos.Line, pos.Col = 1, 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		i += size
		pos.Col++
		if r == '\n' {
			pos.Line++
			pos.Col = 1
		}
	}
	d := diag.Errorf(pos, diag.Unreadable, "the file is no valid UTF-8 here; save it as UTF-8")
	return &d
}

// A chunk is the text between two document markers.
type chunk struct {
	text []byte
	line int // lines of the file before it
}

// chunks splits a file before each line that starts a document and at each that
// ends one. YAML forbids such a line within a scalar, so that no parsing is needed;
// the API machinery does the same.
func chunks(data []byte) []chunk {
	var cs []chunk
	start, startLine, line := 0, 0, 0
	for i := 0; i < len(data); {
		if i > start && isMarker(data[i:], "---") {
			cs = append(cs, chunk{data[start:i], startLine})
			start, startLine = i, line
		}
		end := isMarker(data[i:], "...")
		if end {
			cs = append(cs, chunk{data[start:i], startLine})
		}
		n := bytes.IndexByte(data[i:], '\n')
		if n < 0 {
			n = len(data) - i - 1
		}
		i += n + 1
		line++
		if end {
			start, startLine = i, line
		}
	}
	cs = append(cs, chunk{data[start:], startLine})
	// Directives such as %YAML stand in front of the marker of their document.
	return dropDirectives(cs)
}

func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

func dropDirectives(cs []chunk) []chunk {
	kept := cs[:0]
	for _, c := range cs {
		if !onlyDirectives(c.text) {
			kept = append(kept, c)
		}
	}
	return kept
}

func onlyDirectives(text []byte) bool {
	if isMarker(text, "---") {
		return false
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '%' && line[0] != '#' {
			return false
		}
	}
	return true
}

// read makes nodes of a chunk: one document, or several that end in "...".
func (c chunk) read(name string) (docs []document, ds diag.List) {
	if first := bytes.TrimLeft(c.text, " \t\r\n"); len(first) > 0 && first[0] == '{' {
		if docs, ok := c.readJSON(name); ok {
			return docs, nil
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(c.text))
	for {
		var doc yaml.Node
		err := decode(dec, &doc)
		if errors.Is(err, io.EOF) {
			return docs, ds
		}
		if err != nil {
			return docs, append(ds, c.syntax(name, err))
		}
		v := converter{file: name, line: c.line}
		root := v.convert(&doc, "", 0)
		switch {
		case v.stop:
			ds = append(ds, v.ds...)
		case root != nil && root.Kind != Null:
			docs = append(docs, document{root, v.ds})
		}
	}
}

// decode keeps a panic of the YAML library, should there be one, from ending the
// run: it is a document that does not parse.
func decode(dec *yaml.Decoder, doc *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return dec.Decode(doc)
}

// syntax is the diagnostic for a chunk that is no YAML.
func (c chunk) syntax(name string, err error) diag.Diagnostic {
	if pos, ok := c.template(name); ok {
		return templateError(pos)
	}
	line, text := errorLine(err)
	reason := text
	switch {
	case strings.Contains(text, "tab character"), strings.Contains(text, "cannot start any token") && hasTab(lineOf(c.text, line)):
		for hasTab(lineOf(c.text, line+1)) && !hasTab(lineOf(c.text, line)) {
			line++
		}
		reason = "tabs cannot indent; use spaces"
	case strings.HasPrefix(text, "unknown anchor"):
		name := strings.TrimSuffix(strings.TrimPrefix(text, "unknown anchor '"), "' referenced")
		line = 1 + bytes.Count(before(c.text, "*"+name), []byte("\n"))
		reason = "the anchor " + name + " is not known; define it in the same document, before it is used"
	default:
		reason += "; correct this line or the one before"
	}
	line = min(line, 1+bytes.Count(bytes.TrimRight(c.text, "\r\n"), []byte("\n")))
	source := lineOf(c.text, line)
	pos := diag.Pos{File: name, Line: c.line + line, Col: 1 + len(source) - len(strings.TrimLeft(source, " \t"))}
	return diag.Errorf(pos, diag.Syntax, "this is no valid YAML: %s", reason)
}

// errorLine is the line that an error of the YAML library names, from 1. It counts
// from 0 where its parser and not its scanner has found the error.
func errorLine(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	rest, ok := strings.CutPrefix(text, "line ")
	if !ok {
		return 1, text
	}
	number, text, _ := strings.Cut(rest, ": ")
	line, err = strconv.Atoi(number)
	if err != nil {
		return 1, rest
	}
	for _, parser := range []string{"key", "node content", "'-' indicator", "',' or", "<document start>"} {
		if strings.HasPrefix(text, "did not find expected "+parser) {
			line++
		}
	}
	return line, text
}

// hasTab tells of a tab in the indentation.
func hasTab(line string) bool {
	return strings.Contains(line[:len(line)-len(strings.TrimLeft(line, " \t"))], "\t")
}

func before(text []byte, word string) []byte {
	head, _, _ := bytes.Cut(text, []byte(word))
	return head
}

func lineOf(text []byte, line int) string {
	for l := range bytes.Lines(text) {
		if line--; line == 0 {
			return strings.TrimRight(string(l), "\r\n")
		}
	}
	return ""
}

func templateError(pos diag.Pos) diag.Diagnostic {
	return diag.Errorf(pos, diag.Template, "this file is a template, not yet a policy; render it first, for instance with helm template CHART | kvap convert -")
}

// A converter makes Nodes of one YAML document.
type converter struct {
	file    string
	line    int // lines of the file before the document
	ds      diag.List
	stop    bool // the document is given up
	active  []*yaml.Node
	aliased int
}

func (v *converter) pos(n *yaml.Node, path string) diag.Pos {
	return diag.Pos{File: v.file, Line: v.line + n.Line, Col: n.Column, Path: path}
}

func (v *converter) abandon(d diag.Diagnostic) *Node {
	if !v.stop {
		v.ds = append(v.ds, d)
	}
	v.stop = true
	return nil
}

func (v *converter) convert(n *yaml.Node, path string, depth int) *Node {
	if v.stop {
		return nil
	}
	if depth > maxDepth {
		return v.abandon(diag.Errorf(v.pos(n, path), diag.Syntax, "the document is nested more than %d levels deep", maxDepth))
	}
	if len(v.active) > 0 {
		if v.aliased++; v.aliased > maxAliased {
			return v.abandon(diag.Errorf(v.pos(v.active[0], path), diag.AliasBomb,
				"the aliases of this anchor expand to more than %d nodes; write the values out", maxAliased))
		}
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil
		}
		return v.convert(n.Content[0], path, depth)
	case yaml.AliasNode:
		return v.alias(n, path, depth)
	case yaml.SequenceNode:
		return v.sequence(n, path, depth)
	case yaml.MappingNode:
		return v.mapping(n, path, depth)
	case yaml.ScalarNode:
		return v.value(n, path)
	}
	return nil
}

func (v *converter) alias(n *yaml.Node, path string, depth int) *Node {
	for _, a := range v.active {
		if a == n.Alias {
			return v.abandon(diag.Errorf(v.pos(n, path), diag.AliasBomb, "the alias *%s contains itself", n.Value))
		}
	}
	v.active = append(v.active, n.Alias)
	node := v.convert(n.Alias, path, depth+1)
	v.active = v.active[:len(v.active)-1]
	return node
}

func (v *converter) sequence(n *yaml.Node, path string, depth int) *Node {
	node := &Node{Kind: List, Pos: v.pos(n, path), Items: make([]*Node, 0, len(n.Content))}
	for i, item := range n.Content {
		child := v.convert(item, indexPath(path, i), depth+1)
		if v.stop {
			return nil
		}
		node.Items = append(node.Items, child)
	}
	return node
}

func (v *converter) mapping(n *yaml.Node, path string, depth int) *Node {
	m := newMapping(v.pos(n, path), len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !v.stop; i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.ScalarNode && k.Tag == "!!merge" {
			v.merge(m, value, path, depth)
			continue
		}
		key, ok := v.key(k, path)
		if !ok {
			continue
		}
		sub := keyPath(path, key)
		pos := v.pos(k, sub)
		child := v.convert(value, sub, depth+1)
		if first, ok := m.set(Field{Key: key, Pos: pos, Value: child}, false); !ok {
			v.ds = append(v.ds, duplicate(pos, key, first))
		}
	}
	return m.node
}

func duplicate(pos diag.Pos, key string, first diag.Pos) diag.Diagnostic {
	return diag.Errorf(pos, diag.DuplicateKey, "the key %q stands twice in this mapping, first on line %d; remove one", key, first.Line)
}

// merge applies a << key. As in kubectl's YAML library, what is merged wins over a
// key in front of it and loses to one behind; of several mappings the first wins.
func (v *converter) merge(m *mapping, value *yaml.Node, path string, depth int) {
	source := v.convert(value, path, depth+1)
	if source == nil {
		return
	}
	sources := []*Node{source}
	if source.Kind == List {
		sources = source.Items
	}
	for i := len(sources) - 1; i >= 0; i-- {
		if sources[i].Kind != Map {
			v.ds = append(v.ds, diag.Errorf(v.pos(value, keyPath(path, "<<")), diag.WrongType,
				"a merge key needs a map or a list of maps, not %s", article(sources[i].Kind)))
			continue
		}
		for _, f := range sources[i].Fields {
			if len(sources) > 1 {
				// A list's elements were read under their index.
				f.Value = rebase(f.Value, indexPath(path, i), path)
				f.Pos.Path = path + strings.TrimPrefix(f.Pos.Path, indexPath(path, i))
			}
			m.set(f, true)
		}
	}
}

// rebase replaces the start of all paths of a tree.
func rebase(n *Node, from, to string) *Node {
	return n.edit(func(c *Node) {
		c.Pos.Path = strings.TrimPrefix(to+strings.TrimPrefix(c.Pos.Path, from), ".")
		for i := range c.Fields {
			c.Fields[i].Pos.Path = strings.TrimPrefix(to+strings.TrimPrefix(c.Fields[i].Pos.Path, from), ".")
		}
	})
}

// key is a mapping's key as the text it has in JSON.
func (v *converter) key(k *yaml.Node, path string) (string, bool) {
	for k.Kind == yaml.AliasNode {
		k = k.Alias
	}
	if k.Kind == yaml.MappingNode && k.Style&yaml.FlowStyle != 0 {
		// {{ .Values.x }} without quotes is a mapping whose key is a mapping.
		v.abandon(templateError(v.pos(k, path)))
		return "", false
	}
	if k.Kind != yaml.ScalarNode {
		v.ds = append(v.ds, diag.Errorf(v.pos(k, path), diag.WrongType, "a key must be a string; put it in quotes"))
		return "", false
	}
	if k.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 && k.Style&yaml.TaggedStyle == 0 {
		return k.Value, true
	}
	n := v.scalar(k, path)
	if n == nil {
		return "", false
	}
	switch n.Kind {
	case Bool:
		if text := strconv.FormatBool(n.Bool); !strings.EqualFold(k.Value, text) {
			v.ds = append(v.ds, diag.Warnf(v.pos(k, keyPath(path, text)), diag.WrongType,
				"the key %s is a bool in YAML 1.1 and reaches the API server as %q; put it in quotes", k.Value, text))
		}
		return strconv.FormatBool(n.Bool), true
	case Int:
		return strconv.FormatInt(n.Int, 10), true
	case Float:
		return strconv.FormatFloat(n.Float, 'g', -1, 32), true
	case String:
		return n.Str, true
	}
	v.ds = append(v.ds, diag.Errorf(v.pos(k, path), diag.WrongType, "a key cannot be null; put it in quotes"))
	return "", false
}

func (v *converter) value(n *yaml.Node, path string) *Node {
	node := v.scalar(n, path)
	settle(node)
	return node
}

// scalar is a scalar as YAML has it.
func (v *converter) scalar(n *yaml.Node, path string) *Node {
	node := &Node{Pos: v.pos(n, path)}
	quoted := n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	tagged := n.Style&yaml.TaggedStyle != 0
	switch {
	case quoted && !tagged:
		node.Kind, node.Str = String, n.Value
	case !tagged:
		resolve(node, n.Value)
	case n.Tag == "!!binary":
		data, err := base64.StdEncoding.DecodeString(n.Value)
		if err != nil || !utf8.Valid(data) {
			v.ds = append(v.ds, diag.Errorf(node.Pos, diag.WrongType, "this !!binary value is no text in base64; write the text itself"))
		}
		node.Kind, node.Str = String, strings.ToValidUTF8(string(data), "\ufffd")
	default:
		v.tagged(node, n)
	}
	if node.Kind == Float && !finite(node.Float) {
		v.ds = append(v.ds, diag.Errorf(node.Pos, diag.WrongType, "%s has no form in JSON; put it in quotes if a string is meant", n.Value))
	}
	return node
}

// tagged resolves a scalar with an explicit tag.
func (v *converter) tagged(node *Node, n *yaml.Node) {
	want, typed := map[string]NodeKind{"!!bool": Bool, "!!int": Int, "!!float": Float, "!!null": Null}[n.Tag]
	if !typed {
		node.Kind, node.Str = String, n.Value
		return
	}
	resolve(node, n.Value)
	if got := node.Kind; got != want && (want != Float || got != Int) {
		v.ds = append(v.ds, diag.Errorf(node.Pos, diag.WrongType, "%q is %s, not %s as its tag says; remove the tag", n.Value, article(got), article(want)))
	}
}

// A mapping is a Map in the making; it finds keys fast in large ones.
type mapping struct {
	node  *Node
	index map[string]int
	mine  []bool // the field was written here, not merged
}

func newMapping(pos diag.Pos, size int) *mapping {
	return &mapping{
		node: &Node{Kind: Map, Pos: pos, Fields: make([]Field, 0, size)},
		mine: make([]bool, 0, size),
	}
}

// set adds a field or replaces the one with its key. It tells whether that was
// right, and where the first stands: a key may be written only once.
func (m *mapping) set(f Field, merged bool) (diag.Pos, bool) {
	i, ok := m.find(f.Key)
	if !ok {
		if m.index != nil {
			m.index[f.Key] = len(m.node.Fields)
		}
		m.node.Fields = append(m.node.Fields, f)
		m.mine = append(m.mine, !merged)
		return diag.Pos{}, true
	}
	first, written := m.node.Fields[i].Pos, m.mine[i]
	m.node.Fields[i] = f
	m.mine[i] = m.mine[i] || !merged
	return first, merged || !written
}

func (m *mapping) find(key string) (int, bool) {
	const few = 16
	if m.index == nil && len(m.node.Fields) < few {
		for i := range m.node.Fields {
			if m.node.Fields[i].Key == key {
				return i, true
			}
		}
		return 0, false
	}
	if m.index == nil {
		m.index = make(map[string]int, 2*few)
		for i := range m.node.Fields {
			m.index[m.node.Fields[i].Key] = i
		}
	}
	i, ok := m.index[key]
	return i, ok
}

func indexPath(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

// keyPath appends a key to a field path, quoted where it is no plain word.
func keyPath(path, key string) string {
	if !plainKey(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func plainKey(key string) bool {
	for i := 0; i < len(key); i++ {
		c := key[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return key != ""
}
