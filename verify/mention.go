package verify

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// The steps of a mention that are no field names.
const (
	anyElement = "[]" // of a list
	anyKey     = "{}" // of a map
)

// A mention is a place in the object that a rule looks at: field names, anyElement
// and anyKey.
type mention []string

// mentions are the places in the object that the patterns and expressions of a
// rule name, in the order of the source, each once. What an expression does not
// let one see, such as the fields of something that a function gives, is left out.
func mentions(rule *policy.Rule) []mention {
	f := &mentionFinder{seen: map[string]bool{}, scope: map[string]objectPath{}}
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

// An objectPath is where an expression's value may be in the object; nowhere where
// that is not known.
type objectPath struct {
	paths []mention
	// projected tells that the value is the list of what is at the paths.
	projected bool
	// request tells that the value is the request itself.
	request bool
}

// wholeObject is the finding of the object.
func wholeObject() objectPath { return objectPath{paths: []mention{{}}} }

type mentionFinder struct {
	found []mention
	seen  map[string]bool
	scope map[string]objectPath // of context entries and loop variables
}

func (f *mentionFinder) add(path mention) {
	if key := strings.Join(path, "\x00"); !f.seen[key] {
		f.seen[key] = true
		f.found = append(f.found, path)
	}
}

// step is what is one step below.
func (f *mentionFinder) step(at objectPath, step string) objectPath {
	if at.projected {
		if step == anyElement {
			return objectPath{paths: at.paths}
		}
		return objectPath{}
	}
	out := objectPath{}
	for _, path := range at.paths {
		path = append(slices.Clone(path), step)
		f.add(path)
		out.paths = append(out.paths, path)
	}
	return out
}

func (f *mentionFinder) pattern(n *policy.Node, at objectPath) {
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
			key = anyKey
		}
		f.pattern(field.Value, f.step(at, key))
	}
	for _, item := range n.Items {
		f.pattern(item, f.step(at, anyElement))
	}
}

// patterns are alternatives.
func (f *mentionFinder) patterns(n *policy.Node, at objectPath) {
	if n == nil {
		return
	}
	for _, item := range n.Items {
		f.pattern(item, at)
	}
}

func (f *mentionFinder) entries(entries []*policy.ContextEntry) {
	for _, e := range entries {
		f.scope[e.Name] = objectPath{}
		if v := e.Variable; v != nil {
			f.texts(v.Value)
			f.texts(v.Default)
			if v.JMESPath != nil && v.Value == nil {
				f.scope[e.Name] = f.expression(v.JMESPath.Value)
			}
		}
	}
}

func (f *mentionFinder) conditions(c *policy.Conditions) {
	if c == nil {
		return
	}
	for _, one := range append(slices.Clone(c.Any), c.All...) {
		f.texts(one.Key)
		f.texts(one.Value)
	}
}

func (f *mentionFinder) loops(loops []*policy.ForEach, outer objectPath, depth int) {
	for _, loop := range loops {
		saved := f.scope
		f.scope = map[string]objectPath{}
		for name, at := range saved {
			f.scope[name] = at
		}
		elem := f.step(f.expression(loop.List.Value), anyElement)
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
func (f *mentionFinder) texts(n *policy.Node) {
	if n == nil {
		return
	}
	if n.Kind == policy.String {
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

func (f *mentionFinder) text(s string) {
	if !strings.Contains(s, "{{") {
		return
	}
	if t, d := jmespath.ParseTemplate(s, diag.Pos{}); d == nil {
		f.template(t)
	}
}

func (f *mentionFinder) template(t *jmespath.Template) {
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

func (f *mentionFinder) expression(s string) objectPath {
	e, d := jmespath.Parse(s, diag.Pos{})
	if d != nil {
		return objectPath{}
	}
	return f.eval(e, nil)
}

// eval follows an expression; a nil cur is the root of the context.
func (f *mentionFinder) eval(e *jmespath.Expr, cur *objectPath) objectPath {
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
		return f.step(f.eval(e.Args[0], cur), anyElement)
	case jmespath.Slice:
		return f.eval(e.Args[0], cur)
	case jmespath.Flatten:
		return f.flattened(e, cur)
	case jmespath.Projection, jmespath.Filter:
		elem := f.step(f.eval(e.Args[0], cur), anyElement)
		if e.Op == jmespath.Filter {
			f.eval(e.Args[2], &elem)
		}
		return projection(f.eval(e.Args[1], &elem))
	case jmespath.ValueProjection:
		value := f.step(f.eval(e.Args[0], cur), anyKey)
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
	return objectPath{}
}

func projection(at objectPath) objectPath {
	return objectPath{paths: at.paths, projected: true}
}

// multi is a list of several values.
func (f *mentionFinder) multi(e *jmespath.Expr, cur *objectPath) objectPath {
	out := objectPath{projected: true}
	for _, arg := range e.Args {
		out.paths = append(out.paths, f.eval(arg, cur).paths...)
	}
	return out
}

// flattened is the elements of lists: of the list itself, where its elements are
// none, which is taken for granted unless it is put together from lists.
func (f *mentionFinder) flattened(e *jmespath.Expr, cur *objectPath) objectPath {
	return objectPath{paths: f.eval(e.Args[0], cur).paths}
}

func (f *mentionFinder) parts(e *jmespath.Expr, cur *objectPath) objectPath {
	out := objectPath{}
	for i, arg := range e.Args {
		at := f.eval(arg, cur)
		if i == 0 && e.Op == jmespath.Call {
			switch e.Func {
			case jmespath.FuncKeys, jmespath.FuncValues, jmespath.FuncItems:
				f.step(at, anyKey)
			case jmespath.FuncSort, jmespath.FuncReverse, jmespath.FuncToArray, jmespath.FuncNotNull, jmespath.FuncSortBy:
				out = at
			}
		}
	}
	return out
}

func (f *mentionFinder) field(e *jmespath.Expr, cur *objectPath) objectPath {
	f.template(e.Dynamic)
	switch {
	case cur == nil && e.Name == "request":
		return objectPath{request: true}
	case cur == nil:
		return f.scope[e.Name]
	case cur.request && (e.Name == "object" || e.Name == "oldObject"):
		return wholeObject()
	case cur.request:
		return objectPath{}
	case e.Dynamic != nil:
		return f.step(*cur, anyKey)
	}
	return f.step(*cur, e.Name)
}
