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
	roots    []string // the names at the root of its expressions
	err      error    // why it cannot be read; surfaces where it is used
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
	t.roots = templateRoots(t.tmpl)
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

// templateRoots lists the names that the template's expressions look up at the
// root.
func templateRoots(t *jmespath.Template) []string {
	var roots []string
	for _, p := range t.Parts {
		if p.Var == nil {
			continue
		}
		if p.Var.Expr == nil {
			roots = append(roots, anyRoot)
			continue
		}
		roots = append(roots, expressionRoots(p.Var.Expr)...)
	}
	return roots
}

// anyRoot stands for names that are known only when the request is.
const anyRoot = "@"

// expressionRoots lists the names that an expression looks up at the root.
func expressionRoots(e *jmespath.Expr) []string {
	if e == nil {
		return nil
	}
	var roots []string
	switch e.Op {
	case jmespath.Current:
		return []string{anyRoot}
	case jmespath.Field:
		roots = []string{e.Name}
		if e.Dynamic != nil {
			roots = append(templateRoots(e.Dynamic), anyRoot)
		}
		return roots
	case jmespath.RawString:
		return templateRoots(e.Text)
	case jmespath.Sub, jmespath.Index, jmespath.Slice, jmespath.Flatten, jmespath.Projection,
		jmespath.ValueProjection, jmespath.Filter, jmespath.Pipe:
		// What stands behind the first works on what the first gives, but its
		// strings may hold variables.
		roots = expressionRoots(e.Args[0])
		for _, arg := range e.Args[1:] {
			roots = append(roots, innerRoots(arg)...)
		}
		return roots
	default:
		for _, arg := range e.Args {
			roots = append(roots, expressionRoots(arg)...)
		}
		return roots
	}
}

// innerRoots lists the root names of variables in the strings of an expression.
func innerRoots(e *jmespath.Expr) []string {
	var roots []string
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		for _, t := range []*jmespath.Template{e.Text, e.Dynamic} {
			if t != nil {
				roots = append(roots, templateRoots(t)...)
			}
		}
		return e.Text == nil && e.Dynamic == nil
	})
	return roots
}
