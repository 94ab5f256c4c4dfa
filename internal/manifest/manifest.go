package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/diag"
)

// An Object is a document of a file, or an item of a list in it.
type Object struct {
	Pos   diag.Pos // where its document begins
	Value map[string]any
}

// APIVersion is the object's apiVersion, empty where there is none.
func (o Object) APIVersion() string { return text(o.Value["apiVersion"]) }

// Kind is the object's kind, empty where there is none.
func (o Object) Kind() string { return text(o.Value["kind"]) }

// Meta is a text of the object's metadata, such as its name.
func (o Object) Meta(key string) string {
	meta, _ := o.Value["metadata"].(map[string]any)
	return text(meta[key])
}

// Title is the object in words: kind, namespace if there is one, and name.
func (o Object) Title() string {
	name := o.Meta("name")
	if name == "" {
		name = o.Meta("generateName")
	}
	words := []string{o.Kind(), o.Meta("namespace"), name}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), "/")
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// Read reads the objects of a file. Empty documents are passed over.
func Read(file string, data []byte) ([]Object, diag.List) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, diag.List{diag.Errorf(diag.Pos{File: file}, diag.Unreadable, "the file is no valid UTF-8; save it as UTF-8")}
	}
	var objects []Object
	var found diag.List
	for _, d := range documents(data) {
		read, ds := d.read(file)
		objects = append(objects, read...)
		found = append(found, ds...)
	}
	return objects, found
}

// Documents are the texts of the documents of a file, by the lines that they begin at, in their
// order. Empty ones are left out.
func Documents(data []byte) (texts [][]byte, lines []int) {
	for _, d := range documents(data) {
		texts, lines = append(texts, d.data), append(lines, d.line)
	}
	return texts, lines
}

func documents(data []byte) (out []document) {
	for _, d := range split(data) {
		out = append(out, d.values()...)
	}
	return out
}

// A document is a part of a file. Line is that of its first content.
type document struct {
	data   []byte
	before int // lines of the file in front of it
	line   int
}

// split cuts a file at the lines that begin with --- or are three dots. YAML allows them
// nowhere else, not even in a block of text.
func split(data []byte) []document {
	var out []document
	current := document{}
	flush := func() {
		if current.line > 0 {
			out = append(out, current)
		}
	}
	for n, line := range bytes.SplitAfter(data, []byte("\n")) {
		bare := strings.TrimRight(string(line), " \t\r\n")
		if bare == "---" || strings.HasPrefix(bare, "--- ") {
			flush()
			current = document{before: n}
			line = line[3:]
			bare = bare[3:]
		}
		if bare == "..." || strings.HasPrefix(bare, "... ") {
			flush()
			current = document{before: n + 1}
			continue
		}
		content := strings.TrimSpace(bare)
		if current.line == 0 && content != "" && content[0] != '#' && content[0] != '%' {
			current.line = n + 1
		}
		current.data = append(current.data, line...)
	}
	flush()
	return out
}

// values are the documents of a text in JSON, which may have several, as kubectl takes them; d
// itself where it has one, or is YAML.
func (d document) values() (out []document) {
	if !inBraces(d.data) {
		return []document{d}
	}
	for values := json.NewDecoder(bytes.NewReader(d.data)); ; {
		var value json.RawMessage
		switch err := values.Decode(&value); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			return []document{d}
		}
		before := d.before + bytes.Count(d.data[:int(values.InputOffset())-len(value)], []byte("\n"))
		out = append(out, document{data: value, before: before, line: before + 1})
	}
}

// inBraces tells whether a document is written in braces or brackets.
func inBraces(data []byte) bool {
	text := bytes.TrimLeft(data, " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// Value is what one of Documents says; nil for null.
func Value(document []byte) (value any, err error) {
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if inBraces(document) { // what follows is read only where the whole is part of something
		if _, err := yaml.YAMLToJSON(slices.Concat([]byte("["), document, []byte("\n]"))); err != nil {
			return nil, errors.New("something that cannot be read follows the document in braces; correct it, or put --- between documents")
		}
	}
	err = kjson.Unmarshal(asJSON, &value)
	return value, err
}

// Map is what one of Documents says where that is an object; nil for null.
func Map(document []byte) (map[string]any, error) {
	value, err := Value(document)
	if err != nil {
		return nil, err
	}
	out, is := value.(map[string]any)
	if !is && value != nil {
		return nil, errors.New("it is a list or a bare value")
	}
	return out, nil
}

func (d document) read(file string) ([]Object, diag.List) {
	pos := diag.Pos{File: file, Line: d.line, Col: 1}
	value, err := Value(d.data)
	if err != nil {
		return nil, diag.List{d.syntax(pos, err)}
	}
	return flatten(pos, value)
}

// flatten takes lists apart.
func flatten(pos diag.Pos, value any) (objects []Object, found diag.List) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case []any:
		for _, item := range v {
			inner, ds := flatten(pos, item)
			objects, found = append(objects, inner...), append(found, ds...)
		}
		return objects, found
	case map[string]any:
		items, isList := v["items"].([]any)
		if of, named := strings.CutSuffix(text(v["kind"]), "List"); isList && named {
			for _, item := range items { // as API servers write them, without what the list says
				if one, ok := item.(map[string]any); ok && of != "" && one["kind"] == nil && one["apiVersion"] == nil {
					one["kind"], one["apiVersion"] = of, v["apiVersion"]
				}
			}
			return flatten(pos, items)
		}
		return []Object{{pos, v}}, nil
	}
	return nil, diag.List{diag.Errorf(pos, diag.BadRequest, "the document is no object but a bare value; an object has apiVersion, kind and metadata")}
}

// syntax moves the line in the parser's message to the diagnostic's place.
func (d document) syntax(pos diag.Pos, err error) diag.Diagnostic {
	message := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	at := regexp.MustCompile(`^(?:unmarshal errors:\s*)?line (\d+): `).FindStringSubmatch(message)
	if at != nil {
		n, _ := strconv.Atoi(at[1])
		pos.Line = d.before + min(n, bytes.Count(d.data, []byte("\n"))+1) // YAML has more line breaks than \n
		message = strings.TrimPrefix(message, at[0])
	}
	return diag.Errorf(pos, diag.Syntax, "the document is no valid YAML: %s", message)
}
