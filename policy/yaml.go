package policy

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/kvap/kvap/diag"
)

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

// duplicate tells of a key that has taken the place of the first: kubectl and Kyverno's
// loader take the last too.
func duplicate(pos diag.Pos, key string, first diag.Pos) diag.Diagnostic {
	if key == "apiVersion" && pos.Path == key {
		return diag.Warnf(pos, diag.DuplicateKey, "two documents have run into one here, and what line %d begins is lost; put a line --- between them", first.Line)
	}
	return diag.Warnf(pos, diag.DuplicateKey, "the key %q stands twice in this mapping; this one counts, and that of line %d does not; remove one", key, first.Line)
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
		first := k
		for first.Kind == yaml.MappingNode && len(first.Content) > 0 {
			first = first.Content[0]
		}
		v.abandon(templateError(v.pos(k, path), "{{"+first.Value))
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
		return floatKey(n.Float), true
	case String:
		return n.Str, true
	}
	v.ds = append(v.ds, diag.Errorf(v.pos(k, path), diag.WrongType, "a key cannot be null; put it in quotes"))
	return "", false
}

// floatKey is a key that is a number, as kubectl sends it: with the digits of 32 bits, in
// which what is too large is infinite.
func floatKey(f float64) string {
	switch text := strconv.FormatFloat(f, 'g', -1, 32); text {
	case "+Inf":
		return ".inf"
	case "-Inf":
		return "-.inf"
	default:
		return text
	}
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
// right, and where the one before stands: a key should be written only once.
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
