package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/schema"
)

// A readField is a node of what expressions read: fields, by name, and elements, by [].
type readField struct {
	parts map[string]*readField
}

// add makes the places of a path such as object.spec.containers[].image.
func (p *readField) add(path string) {
	for _, name := range strings.FieldsFunc(strings.ReplaceAll(path, "[]", ".[]"), func(r rune) bool { return r == '.' }) {
		if p.parts == nil {
			p.parts = map[string]*readField{}
		}
		if p.parts[name] == nil {
			p.parts[name] = &readField{}
		}
		p = p.parts[name]
	}
}

// paths are the places in the object and the params: lists and maps, and others.
func (p *readField) paths() (collections, others []string) {
	var walk func(at *readField, path string)
	walk = func(at *readField, path string) {
		if at.parts["[]"] != nil {
			collections = append(collections, path)
		} else if len(at.names()) == 0 {
			others = append(others, path)
		}
		for _, name := range at.names() {
			below := path + "." + name
			if name == "[]" {
				below = path + name
			}
			walk(at.within(name), below)
		}
	}
	for _, root := range []string{"object", "params"} {
		walk(p.within(root), root)
	}
	return collections, others
}

// A worst makes large objects: what expressions read is there, as large as the sizes
// say, and what they do not read is left out.
type worst struct {
	sizes func(path string) (chars, items int)
	// texts are what texts begin with, one after the other.
	texts []string
	flag  bool // the value of booleans
	made  int  // texts
	room  int  // characters that may still be made
}

// value makes what is at a path.
func (w *worst) value(at *readField, t *schema.Type, path string) any {
	switch kindAt(at, t) {
	case schema.Bool:
		return w.flag
	case schema.Int, schema.Number:
		return int64(1)
	case schema.IntOrString:
		return "1"
	case schema.List:
		var elem *schema.Type
		if t != nil {
			elem = t.Elem
		}
		out := []any{}
		for range w.fit(path) {
			out = append(out, w.value(at.within("[]"), elem, path+"[]"))
		}
		return out
	case schema.Map:
		return w.entries(at, t, path)
	case schema.Object:
		out := map[string]any{}
		for _, name := range at.names() {
			if field, ok := fieldOf(t, name); ok {
				out[name] = w.value(at.parts[name], field, path+"."+name)
			}
		}
		if name := something(t); len(out) == 0 && name != "" {
			out[name] = w.text(t.Fields[name].Type, path+"."+name)
		}
		return out
	}
	return w.text(t, path)
}

// something is a field of a type that makes an object of it more than empty.
func something(t *schema.Type) string {
	if t == nil {
		return ""
	}
	var names []string
	for name, f := range t.Fields {
		if f.Type.Kind == schema.String {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}

// fit is how many elements there are at a path, as far as there is room for them.
func (w *worst) fit(path string) int {
	const least = 8 // characters of an element
	_, n := w.sizes(path)
	n = min(n, max(1, w.room/least))
	w.room -= n * least
	return n
}

func (w *worst) entries(at *readField, t *schema.Type, path string) map[string]any {
	out := map[string]any{}
	var elem *schema.Type
	if t != nil {
		elem = t.Elem
	}
	for _, name := range at.names() {
		if name != "[]" {
			out[name] = w.value(at.parts[name], elem, path+"."+name)
		}
	}
	for i := range w.fit(path) {
		out[fmt.Sprintf("acme.io/key-%04d", i)] = w.value(at.within("[]"), elem, path+"[]")
	}
	return out
}

// text is as long as it may be, and of the form that its format asks for.
func (w *worst) text(t *schema.Type, path string) string {
	if t != nil {
		switch t.Format {
		case schema.Quantity:
			return "1"
		case schema.DateTime:
			return "2030-01-01T00:00:00Z"
		case schema.Duration:
			return "1h0m0s"
		}
	}
	head := ""
	if len(w.texts) > 0 {
		head = w.texts[w.made%len(w.texts)]
	}
	w.made++
	chars, _ := w.sizes(path)
	n := max(0, min(chars, w.room)-len(head))
	w.room -= n
	return head + strings.Repeat("a", n)
}

// kindAt is the kind of a value by its type, or by what is read of it.
func kindAt(at *readField, t *schema.Type) schema.Kind {
	if t != nil && t.Kind != schema.Any {
		return t.Kind
	}
	switch {
	case at == nil || len(at.parts) == 0:
		return schema.String
	case at.parts["[]"] != nil:
		return schema.List
	}
	return schema.Object
}

// fieldOf is the type of a field; it is not ok for one that objects do not have.
func fieldOf(t *schema.Type, name string) (*schema.Type, bool) {
	if t == nil || t.Kind != schema.Object {
		return nil, true
	}
	if f := t.Fields[name]; f != nil {
		return f.Type, true
	}
	return nil, t.Open
}

func (p *readField) within(name string) *readField {
	if p == nil || p.parts[name] == nil {
		return &readField{}
	}
	return p.parts[name]
}

func (p *readField) names() []string {
	if p == nil {
		return nil
	}
	var out []string
	for name := range p.parts {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// request is what a request is at most.
func (w *worst) request() map[string]any {
	groups, extra := []any{}, []any{}
	_, many := w.sizes("request.userInfo.groups")
	for i := range many {
		groups = append(groups, fmt.Sprintf("system:group-%060d", i))
	}
	for i := range 10 {
		extra = append(extra, fmt.Sprintf("%060d", i))
	}
	kind := map[string]any{"group": "apps", "version": "v1", "kind": "Deployment"}
	resource := map[string]any{"group": "apps", "version": "v1", "resource": "deployments"}
	return map[string]any{
		"kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource, "operation": "UPDATE",
		"name": w.text(nil, "request.name"), "namespace": "default", "dryRun": false, "options": map[string]any{},
		"userInfo": map[string]any{
			"username": "system:serviceaccount:default:" + strings.Repeat("a", 200), "uid": strings.Repeat("0", 36),
			"groups": groups, "extra": map[string]any{"key": extra},
		},
	}
}
