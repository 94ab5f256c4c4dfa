package check

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	sigsjson "sigs.k8s.io/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// decode fills an object as an API server does, which knows a field by its exact
// spelling alone. unknown are the fields that the object's type does not have.
func decode(n *policy.Node, kind string, into any) (unknown diag.List, failed *diag.Diagnostic) {
	text, err := json.Marshal(n.Value())
	if err != nil {
		d := unreadable(n.Pos, kind, err)
		return nil, &d
	}
	strict, err := sigsjson.UnmarshalStrict(text, into)
	if err != nil {
		d := misfit(n, kind, err)
		return nil, &d
	}
	nodes := nodesOf(n)
	for _, e := range strict {
		var at sigsjson.FieldError
		if errors.As(e, &at) {
			unknown = append(unknown, unknownField(keyAt(n, nodes, at.FieldPath()), kind, fieldsBeside(into, at.FieldPath())))
		}
	}
	return unknown, nil
}

// keyAt is the place of a key, which may be one that leads to nothing known.
func keyAt(root *policy.Node, nodes map[string]*policy.Node, path string) diag.Pos {
	holder, key := cutLast(path)
	pos := root.Pos
	if n := nodes[holder]; n != nil {
		pos = n.Pos
		for _, f := range n.Fields {
			if f.Key == key {
				pos = f.Pos
			}
		}
	}
	pos.Path = path
	return pos
}

// cutLast parts a path in front of its last field.
func cutLast(path string) (holder, field string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

// fieldsBeside are the fields of the type that would have the last one of a path.
func fieldsBeside(into any, path string) []string {
	t := reflect.TypeOf(into)
	holder, _ := cutLast(withoutIndexes(path))
	for name := range strings.SplitSeq(holder, ".") {
		if name != "" {
			t = fieldsOf(t)[name]
		}
	}
	return slices.Sorted(maps.Keys(fieldsOf(t)))
}

// fieldsOf are the fields of a struct, or of the elements of a list, by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}

// misfit tells of a value of the wrong type. JSON does not say which one of a list it
// is: the first that is of that type.
func misfit(n *policy.Node, kind string, err error) diag.Diagnostic {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return unreadable(n.Pos, kind, err)
	}
	is, _, _ := strings.Cut(wrong.Value, " ")
	path := withoutEmbedded(wrong.Field)
	var blamed *policy.Node
	for at, v := range nodesOf(n) {
		if withoutIndexes(at) == path && jsonWord(v.Kind) == is && (blamed == nil || v.Pos.Compare(blamed.Pos) < 0) {
			blamed = v
		}
	}
	if blamed == nil {
		return unreadable(n.Pos, kind, err)
	}
	return wrongType(blamed, kind, path, wrong.Type)
}

// jsonWord is what Go's reader of JSON calls a kind.
func jsonWord(k policy.NodeKind) string {
	switch k {
	case policy.Map:
		return "object"
	case policy.List:
		return "array"
	case policy.Int, policy.Float:
		return "number"
	}
	return k.String()
}

// wordFor is what users call a type.
func wordFor(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Slice:
		return "list"
	case reflect.Struct, reflect.Map:
		return "map"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer"
	}
	return t.Kind().String()
}

// withoutEmbedded takes out of a path what it has of Go: the names of embedded structs.
func withoutEmbedded(path string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(path, "."), func(name string) bool {
		return name != "" && unicode.IsUpper(rune(name[0]))
	}), ".")
}

// withoutIndexes takes the places in lists out of a path.
func withoutIndexes(path string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(path, "[") {
		if _, behind, ok := strings.Cut(part, "]"); ok {
			part = behind
		}
		b.WriteString(part)
	}
	return b.String()
}
