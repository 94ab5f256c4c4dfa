package policy

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// The steps of a Mention that are no field names.
const (
	AnyElement = "[]" // of a list
	AnyKey     = "{}" // of a map
)

// A Mention is a place in the object that a rule looks at: field names, AnyElement
// and AnyKey.
type Mention []string

// Mentions are the places in the object that the patterns and expressions of a
// rule name, in the order of the source, each once. What an expression does not
// let one see, such as the fields of something that a function gives, is left out.
func (rule *Rule) Mentions() []Mention {
	f := &finder{seen: map[string]bool{}, scope: map[string]finding{}}
	f.entries(rule.Context)
	f.conditions(rule.Preconditions)
	v := rule.Validate
	if v == nil {
		return f.found
	}
	object := wholeObject()
	f.pattern(v.Pattern, object)
	f.patterns(v.AnyPattern, object)
	if v.Deny != nil {
		f.conditions(v.Deny.Conditions)
	}
	f.loops(v.ForEach, object, 0)
	return f.found
}

// A finding is where an expression's value may be in the object; nowhere where
// that is not known.
type finding struct {
	paths []Mention
	// projected tells that the value is the list of what is at the paths.
	projected bool
	// request tells that the value is the request itself.
	request bool
}

// wholeObject is the finding of the object.
func wholeObject() finding { return finding{paths: []Mention{{}}} }

type finder struct {
	found []Mention
	seen  map[string]bool
	scope map[string]finding // of context entries and loop variables
}

func (f *finder) add(path Mention) {
	if key := strings.Join(path, "\x00"); !f.seen[key] {
		f.seen[key] = true
		f.found = append(f.found, path)
	}
}

// step is what is one step below.
func (f *finder) step(at finding, step string) finding {
	if at.projected {
		if step == AnyElement {
			return finding{paths: at.paths}
		}
		return finding{}
	}
	out := finding{}
	for _, path := range at.paths {
		path = append(slices.Clone(path), step)
		f.add(path)
		out.paths = append(out.paths, path)
	}
	return out
}

func (f *finder) pattern(n *Node, at finding) {
	if n == nil {
		return
	}
	f.texts(n)
	for _, field := range n.Fields {
		key := strings.TrimSpace(field.Key)
		if open := strings.IndexByte(key, '('); open >= 0 && open <= 1 && strings.HasSuffix(key, ")") {
			key = key[open+1 : len(key)-1]
		}
		if strings.ContainsAny(key, "*?") {
			key = AnyKey
		}
		f.pattern(field.Value, f.step(at, key))
	}
	for _, item := range n.Items {
		f.pattern(item, f.step(at, AnyElement))
	}
}

// patterns are alternatives.
func (f *finder) patterns(n *Node, at finding) {
	if n == nil {
		return
	}
	for _, item := range n.Items {
		f.pattern(item, at)
	}
}

func (f *finder) entries(entries []*ContextEntry) {
	for _, e := range entries {
		f.scope[e.Name] = finding{}
		if v := e.Variable; v != nil {
			f.texts(v.Value)
			f.texts(v.Default)
			if v.JMESPath != nil && v.Value == nil {
				f.scope[e.Name] = f.expression(v.JMESPath.Value)
			}
		}
	}
}

func (f *finder) conditions(c *Conditions) {
	if c == nil {
		return
	}
	for _, one := range append(slices.Clone(c.Any), c.All...) {
		f.texts(one.Key)
		f.texts(one.Value)
	}
}

func (f *finder) loops(loops []*ForEach, outer finding, depth int) {
	for _, loop := range loops {
		saved := f.scope
		f.scope = map[string]finding{}
		for name, at := range saved {
			f.scope[name] = at
		}
		elem := f.step(f.expression(loop.List.Value), AnyElement)
		f.scope["element"], f.scope["element"+string(rune('0'+depth))] = elem, elem
		f.entries(loop.Context)
		f.conditions(loop.Preconditions)
		in := elem
		if loop.ElementScope != nil && !*loop.ElementScope {
			in = outer
		}
		f.pattern(loop.Pattern, in)
		f.patterns(loop.AnyPattern, in)
		if loop.Deny != nil {
			f.conditions(loop.Deny.Conditions)
		}
		f.loops(loop.ForEach, in, depth+1)
		f.scope = saved
	}
}

// texts looks into the variables of all strings of a value.
func (f *finder) texts(n *Node) {
	if n == nil {
		return
	}
	if n.Kind == String {
		f.text(n.Str)
	}
	for _, item := range n.Items {
		f.texts(item)
	}
	for _, field := range n.Fields {
		f.text(field.Key)
		f.texts(field.Value)
	}
}

func (f *finder) text(s string) {
	if !strings.Contains(s, "{{") {
		return
	}
	if t, d := jmespath.ParseTemplate(s, diag.Pos{}); d == nil {
		f.template(t)
	}
}

func (f *finder) template(t *jmespath.Template) {
	if t == nil {
		return
	}
	for _, part := range t.Parts {
		if part.Var == nil {
			continue
		}
		if part.Var.Expr != nil {
			f.eval(part.Var.Expr, nil)
		}
		f.template(part.Var.Body)
	}
}

func (f *finder) expression(s string) finding {
	e, d := jmespath.Parse(s, diag.Pos{})
	if d != nil {
		return finding{}
	}
	return f.eval(e, nil)
}

// eval follows an expression; a nil cur is the root of the context.
func (f *finder) eval(e *jmespath.Expr, cur *finding) finding {
	switch e.Op {
	case jmespath.Current:
		if cur != nil {
			return *cur
		}
	case jmespath.Field:
		return f.field(e, cur)
	case jmespath.Sub, jmespath.Pipe:
		left := f.eval(e.Args[0], cur)
		return f.eval(e.Args[1], &left)
	case jmespath.Index:
		return f.step(f.eval(e.Args[0], cur), AnyElement)
	case jmespath.Slice:
		return f.eval(e.Args[0], cur)
	case jmespath.Flatten:
		return f.flattened(e, cur)
	case jmespath.Projection, jmespath.Filter:
		elem := f.step(f.eval(e.Args[0], cur), AnyElement)
		if e.Op == jmespath.Filter {
			f.eval(e.Args[2], &elem)
		}
		return projection(f.eval(e.Args[1], &elem))
	case jmespath.ValueProjection:
		value := f.step(f.eval(e.Args[0], cur), AnyKey)
		return projection(f.eval(e.Args[1], &value))
	case jmespath.MultiList:
		return f.multi(e, cur)
	case jmespath.Or:
		left := f.eval(e.Args[0], cur)
		if right := f.eval(e.Args[1], cur); len(left.paths) == 0 {
			return right
		}
		return left
	case jmespath.RawString:
		f.template(e.Text)
	default:
		return f.parts(e, cur)
	}
	return finding{}
}

func projection(at finding) finding {
	return finding{paths: at.paths, projected: true}
}

// multi is a list of several values.
func (f *finder) multi(e *jmespath.Expr, cur *finding) finding {
	out := finding{projected: true}
	for _, arg := range e.Args {
		out.paths = append(out.paths, f.eval(arg, cur).paths...)
	}
	return out
}

// flattened is the elements of lists: of the list itself, where its elements are
// none, which is taken for granted unless it is put together from lists.
func (f *finder) flattened(e *jmespath.Expr, cur *finding) finding {
	return finding{paths: f.eval(e.Args[0], cur).paths}
}

func (f *finder) parts(e *jmespath.Expr, cur *finding) finding {
	out := finding{}
	for i, arg := range e.Args {
		at := f.eval(arg, cur)
		if i == 0 && e.Op == jmespath.Call {
			switch e.Name {
			case "keys", "values", "items":
				f.step(at, AnyKey)
			case "sort", "reverse", "to_array", "not_null", "sort_by":
				out = at
			}
		}
	}
	return out
}

func (f *finder) field(e *jmespath.Expr, cur *finding) finding {
	f.template(e.Dynamic)
	switch {
	case cur == nil && e.Name == "request":
		return finding{request: true}
	case cur == nil:
		return f.scope[e.Name]
	case cur.request && (e.Name == "object" || e.Name == "oldObject"):
		return wholeObject()
	case cur.request:
		return finding{}
	case e.Dynamic != nil:
		return f.step(*cur, AnyKey)
	}
	return f.step(*cur, e.Name)
}
