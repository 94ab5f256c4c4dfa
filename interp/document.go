package interp

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// A template is a piece of policy text, such as a pattern or a condition's key,
// read once so that its variables can be filled in for each request.
type template struct {
	constant any // the value of a document without variables
	fixed    bool
	text     *text // of a string with variables
	items    []*template
	fields   []templateField // of a map
}

type templateField struct {
	key   string
	text  *text // of a key with variables
	value *template
}

// A text is a string with variables.
type text struct {
	tmpl *jmespath.Template
	// onDelete has request.oldObject for request.object.
	onDelete *jmespath.Template
	err      error // why it cannot be read; surfaces where it is used
}

// readDocument reads a node; nil is null. $( ) references are resolved within
// it.
func readDocument(n *policy.Node) *template {
	if n == nil {
		return &template{fixed: true}
	}
	return references{root: n}.document(n, nil)
}

// document reads one node at a path below the root.
func (r references) document(n *policy.Node, path []string) *template {
	switch n.Kind {
	case policy.String:
		return stringDocument(r.text(n, path))
	case policy.List:
		return r.listDocument(n, path)
	case policy.Map:
		return r.mapDocument(n, path)
	default:
		return &template{constant: n.Value(), fixed: true}
	}
}

func stringDocument(t *text) *template {
	if s, ok := t.constant(); ok {
		return &template{constant: s, fixed: true}
	}
	return &template{text: t}
}

func (r references) listDocument(n *policy.Node, path []string) *template {
	d := &template{items: make([]*template, len(n.Items)), fixed: true}
	values := make([]any, len(n.Items))
	for i, item := range n.Items {
		d.items[i] = r.document(item, childPath(path, i))
		d.fixed = d.fixed && d.items[i].fixed
		values[i] = d.items[i].constant
	}
	if d.fixed {
		d.constant = values
	}
	return d
}

func (r references) mapDocument(n *policy.Node, path []string) *template {
	d := &template{fields: make([]templateField, len(n.Fields)), fixed: true}
	values := make(map[string]any, len(n.Fields))
	for i, f := range n.Fields {
		key := readText(f.Key, f.Pos)
		d.fields[i] = templateField{key: f.Key, value: r.document(f.Value, append(path[:len(path):len(path)], f.Key))}
		if s, ok := key.constant(); ok {
			d.fields[i].key = s
		} else {
			d.fields[i].text = key
		}
		d.fixed = d.fixed && d.fields[i].text == nil && d.fields[i].value.fixed
		values[d.fields[i].key] = d.fields[i].value.constant
	}
	if d.fixed {
		d.constant = values
	}
	return d
}

// constant is the string of a text that has no variables.
func (t *text) constant() (string, bool) {
	if t.err != nil {
		return "", false
	}
	return t.tmpl.Constant()
}

// single is the variable that is the whole text, or nil.
func (t *text) single() *jmespath.Variable {
	if t.err != nil {
		return nil
	}
	return t.tmpl.Single()
}

// derive fills in what follows from the template.
func (t *text) derive() *text {
	if t.err != nil {
		return t
	}
	t.onDelete, t.err = rewriteForDelete(t.tmpl)
	return t
}

// rewriteForDelete gives the template that a DELETE is judged by: in variables,
// the text request.object is read as request.oldObject.
func rewriteForDelete(t *jmespath.Template) (*jmespath.Template, error) {
	const object, oldObject = "request.object", "request.oldObject"
	mentions := func(p jmespath.Part) bool { return p.Var != nil && strings.Contains(p.Var.Raw, object) }
	if !slices.ContainsFunc(t.Parts, mentions) {
		return t, nil
	}
	out := *t
	out.Parts = make([]jmespath.Part, len(t.Parts))
	for i, p := range t.Parts {
		out.Parts[i] = p
		if !mentions(p) {
			continue
		}
		single, err := jmespath.ParseTemplate(strings.ReplaceAll(variableText(p.Var), object, oldObject), p.Var.Pos)
		if err != nil {
			return nil, err
		}
		out.Parts[i].Var = single.Single()
	}
	return &out, nil
}
