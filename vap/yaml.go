package vap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Marshal writes objects as kubectl apply takes them: one YAML document each, in
// the order of the API's fields, without status, with expressions of several
// lines as literal blocks. Objects may be of any type that marshals to a JSON object.
func Marshal(objects ...any) ([]byte, error) {
	var out bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			out.WriteString("---\n")
		}
		node, err := document(o)
		if err != nil {
			return nil, err
		}
		enc := yaml.NewEncoder(&out)
		enc.SetIndent(2)
		enc.CompactSeqIndent()
		if err := enc.Encode(node); err != nil {
			return nil, err
		}
		if err := enc.Close(); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// MarshalJSON writes objects as a v1 List, in the order of Marshal.
func MarshalJSON(objects ...any) ([]byte, error) {
	list := struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{"v1", "List", []json.RawMessage{}}
	for _, o := range objects {
		node, err := document(o)
		if err != nil {
			return nil, err
		}
		var item bytes.Buffer
		if err := writeJSON(&item, node); err != nil {
			return nil, err
		}
		list.Items = append(list.Items, item.Bytes())
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // CEL is full of < and &
	enc.SetIndent("", "  ")
	if err := enc.Encode(list); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// All are the policy and its bindings as Marshal takes them.
func (o Objects) All() []any {
	var out []any
	if o.Policy != nil {
		out = append(out, o.Policy)
	}
	for _, b := range o.Bindings {
		out = append(out, b)
	}
	return out
}

// document is the object as a tree of YAML nodes in the order of its JSON.
func document(object any) (*yaml.Node, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	node, err := decodeNode(dec)
	if err != nil {
		return nil, err
	}
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%T is no object", object)
	}
	prune(node)
	return node, nil
}

// prune drops what a server fills in, creationTimestamp and an empty status, and
// puts apiVersion before kind.
func prune(root *yaml.Node) {
	if c := root.Content; len(c) >= 4 && c[0].Value == "kind" && c[2].Value == "apiVersion" {
		c[0], c[1], c[2], c[3] = c[2], c[3], c[0], c[1]
	}
	drop(root, "status", func(v *yaml.Node) bool { return v.Kind == yaml.MappingNode && len(v.Content) == 0 })
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "metadata" {
			drop(root.Content[i+1], "creationTimestamp", func(v *yaml.Node) bool { return v.Tag == "!!null" })
		}
	}
}

func drop(m *yaml.Node, key string, empty func(*yaml.Node) bool) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key && empty(m.Content[i+1]) {
			m.Content = append(m.Content[:i], m.Content[i+2:]...)
			return
		}
	}
}

func decodeNode(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if t == '[' {
			node = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		}
		for dec.More() {
			child, err := decodeNode(dec)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		if _, err := dec.Token(); err != nil { // the closing delimiter
			return nil, err
		}
		if len(node.Content) == 0 {
			node.Style = yaml.FlowStyle // {} and []
		}
		return node, nil
	case string:
		return stringNode(t), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(t.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	return nil, io.ErrUnexpectedEOF
}

func stringNode(s string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case strings.Contains(s, "\n"), strings.Contains(s, "'") && !plain(s):
		node.Style = yaml.LiteralStyle // CEL has many quotes, which a quoted scalar would double
	case ambiguous(s):
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// plain tells that s, which is on one line, needs no quotes.
func plain(s string) bool {
	return !strings.ContainsAny(s[:1], "!&*-?|>'\"%@`{}[],#:= ") && !strings.Contains(s, ": ") && !strings.Contains(s, " #") && !strings.HasSuffix(s, ":")
}

// ambiguous tells that a plain s is something else to readers of YAML 1.1, which
// kubectl is in part: a boolean or a number to the base of sixty.
func ambiguous(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	}
	return strings.Contains(s, ":") && regexp.MustCompile(`^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$`).MatchString(s)
}

func writeJSON(w *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		w.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := writeString(w, n.Content[i].Value); err != nil {
				return err
			}
			w.WriteByte(':')
			if err := writeJSON(w, n.Content[i+1]); err != nil {
				return err
			}
		}
		w.WriteByte('}')
	case yaml.SequenceNode:
		w.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				w.WriteByte(',')
			}
			if err := writeJSON(w, c); err != nil {
				return err
			}
		}
		w.WriteByte(']')
	default:
		if n.Tag != "!!str" {
			w.WriteString(n.Value)
			return nil
		}
		return writeString(w, n.Value)
	}
	return nil
}

func writeString(w *bytes.Buffer, s string) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	w.Truncate(w.Len() - 1) // Encode ends with a line break
	return nil
}
