package fields

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A fieldWalk goes through the source of a rule and looks for fields that no object
// has. The rule as written is gone through for its expansions as well: positions are
// right in it alone.
type fieldWalk struct {
	object  shape // request.object, and request.oldObject
	subject shape // what patterns are held against
	// elements are those of the foreach around, by their names.
	elements map[string]shape
	depth    int
	text     string // at hand
	lists    listTypes
	budget   *budget.Budget
	// shadowed tells of a context entry with the name of an element.
	shadowed bool
	found    diag.List
}

// block goes through a rule, its validate block, or an entry of a foreach.
func (u *fieldWalk) block(n *policy.Node) {
	for _, entry := range items(n.Get("context")) {
		u.contextEntry(entry)
	}
	u.texts(n.Get("preconditions"))
	u.texts(n.Get("deny"))
	u.misreadFilters(n.Get("match"))
	u.misreadFilters(n.Get("exclude"))
	u.misreadConditions(n.Get("preconditions"))
	u.misreadConditions(n.Get("deny"))
	u.pattern(n.Get("pattern"), u.subject, otherMap)
	for _, p := range items(n.Get("anyPattern")) {
		u.pattern(p, u.subject, otherMap)
	}
	for _, entry := range items(n.Get("foreach")) {
		u.forEach(entry)
	}
}

func items(n *policy.Node) []*policy.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// contextEntry goes through an entry. What its name stands for then is not known.
func (u *fieldWalk) contextEntry(n *policy.Node) {
	if name := n.Get("name"); name != nil {
		u.shadowed = u.shadowed || strings.HasPrefix(name.Str, "element")
	}
	if v := n.Get("variable"); v != nil && v.Get("value") == nil { // else the query is about the value
		u.query(v.Get("jmesPath"))
	}
	u.texts(n)
}

// forEach goes through an entry of a foreach, in which patterns are about the element.
func (u *fieldWalk) forEach(n *policy.Node) {
	element := u.query(n.Get("list"))
	if of := element.items(); of != nil {
		element = of
	}
	inside := *u
	inside.subject, inside.depth = element, u.depth+1
	if n.Get("elementScope") != nil { // false makes patterns look at what is around
		inside.subject = nil
	}
	inside.elements = maps.Clone(u.elements)
	if inside.elements == nil {
		inside.elements = map[string]shape{}
	}
	inside.elements["element"], inside.elements["element"+strconv.Itoa(u.depth)] = element, element
	inside.block(n)
	u.found, u.shadowed = inside.found, inside.shadowed
}

// pattern goes through a pattern of a value, in a map of a kind.
func (u *fieldWalk) pattern(p *policy.Node, of shape, in mapKind) {
	if p == nil {
		return
	}
	u.budget.Spend(1 + len(of))
	switch p.Kind {
	case policy.String:
		u.texts(p)
		u.misreadPattern(p)
	case policy.List:
		for _, item := range p.Items {
			u.pattern(item, of.items(), otherMap)
		}
	case policy.Map:
		for _, f := range p.Fields {
			var value shape
			if key, ok := fieldOfKey(f.Key); ok {
				value = u.field(of, key, f.Pos)
			}
			u.literalKey(f, in)
			kind, key := anchor.Split(f.Key)
			if kind == anchor.Negation { // whatever the value
				continue
			}
			if kind != anchor.Existence && f.Value.Kind == policy.List {
				u.otherElements(f.Value)
			}
			u.pattern(f.Value, value, in.below(key))
		}
	}
}

// fieldOfKey is the field that a key of a pattern names, whatever its anchor; false
// where that is not written out.
func fieldOfKey(key string) (field string, ok bool) {
	_, field = anchor.Split(key)
	if rest, added := strings.CutPrefix(field, "+("); added {
		field = strings.TrimSuffix(rest, ")")
	}
	return field, !scalar.IsWild(field) && !strings.ContainsAny(field, "{}$()")
}

// texts goes through the variables of all texts but messages, which deny nothing.
func (u *fieldWalk) texts(n *policy.Node) {
	if n == nil {
		return
	}
	if n.Kind == policy.String && strings.Contains(n.Str, "{{") {
		u.template(n)
	}
	for _, item := range n.Items {
		u.texts(item)
	}
	for _, f := range n.Fields {
		if f.Key != "message" {
			u.texts(f.Value)
		}
	}
}

// template goes through the variables of a text, and gives what the text is where that
// is one of them.
func (u *fieldWalk) template(n *policy.Node) shape {
	t, bad := jmespath.ParseTemplate(n.Str, n.Pos)
	if bad != nil {
		return nil
	}
	u.text = n.Str
	shapes := u.variables(t)
	if t.Single() == nil {
		return nil
	}
	return shapes
}

// query goes through an expression, or a text with variables in its place.
func (u *fieldWalk) query(n *policy.Node) shape {
	if n == nil || n.Kind != policy.String {
		return nil
	}
	if strings.Contains(n.Str, "{{") {
		return u.template(n)
	}
	e, bad := jmespath.Parse(n.Str, n.Pos)
	if bad != nil {
		return nil
	}
	u.text = n.Str
	return u.expression(e)
}

// A fieldContext is what the fields of an expression are looked up in.
type fieldContext struct {
	in   contextKind
	what shape // inValue
}

type contextKind int

const (
	inValue   contextKind = iota
	inScope               // the variables
	inRequest             // the request
)

// variables goes through the variables of a text, and gives the shape of the last.
func (u *fieldWalk) variables(t *jmespath.Template) (last shape) {
	if t == nil {
		return nil
	}
	for _, p := range t.Parts {
		switch {
		case p.Var == nil:
		case p.Var.Expr != nil:
			last = u.expression(p.Var.Expr)
		default:
			u.variables(p.Var.Body)
			last = nil
		}
	}
	return last
}

func (u *fieldWalk) expression(e *jmespath.Expr) shape {
	return u.look(e, fieldContext{in: inScope}).what
}

func valueContext(s shape) fieldContext { return fieldContext{what: s} }

// look goes through an expression and gives what is known of its value, which is what
// the right side of a sub-expression is looked up in.
func (u *fieldWalk) look(e *jmespath.Expr, in fieldContext) fieldContext {
	u.budget.Spend(1 + len(in.what))
	switch e.Op {
	case jmespath.Current:
		return in
	case jmespath.Field:
		return u.lookField(e, in)
	case jmespath.Sub, jmespath.Pipe:
		return u.look(e.Args[1], u.look(e.Args[0], in))
	case jmespath.Index:
		return valueContext(u.look(e.Args[0], in).what.items())
	case jmespath.Slice:
		return valueContext(u.listed(u.look(e.Args[0], in).what.items()))
	case jmespath.Flatten:
		return valueContext(u.look(e.Args[0], in).what.flattened())
	case jmespath.Projection, jmespath.ValueProjection, jmespath.Filter:
		return u.lookProjection(e, in)
	case jmespath.Or, jmespath.MultiList:
		return u.lookSeveral(e, in)
	case jmespath.ExpRef:
		in = fieldContext{} // the function says what it is about
	}
	u.variables(e.Text)
	for _, arg := range e.Args {
		u.look(arg, in)
	}
	return fieldContext{}
}

func (u *fieldWalk) lookField(e *jmespath.Expr, in fieldContext) fieldContext {
	u.variables(e.Dynamic)
	switch {
	case e.Dynamic != nil:
		return fieldContext{}
	case in.in == inScope && e.Name == "request":
		return fieldContext{in: inRequest}
	case in.in == inScope:
		return valueContext(u.elements[e.Name])
	case in.in == inRequest && (e.Name == "object" || e.Name == "oldObject"):
		return valueContext(u.object)
	case in.in == inRequest:
		return fieldContext{}
	}
	return valueContext(u.field(u.placed(in.what, e.Name), e.Name, e.Pos))
}

// placed is a value as the rule has it in its expansions. Those are made of the text:
// what it calls request.object.spec is the pod's in the template. What it finds by
// another way, though, stays that of the object.
func (u *fieldWalk) placed(s shape, name string) shape {
	if name != "spec" || !slices.ContainsFunc(s, func(a alternative) bool { return a.pod != nil }) {
		return s
	}
	moved := strings.Contains(u.text, "request.object.spec") || strings.Contains(u.text, "request.oldObject.spec")
	var out shape
	for _, a := range s {
		if a.pod == nil || !moved {
			out = append(out, a)
		}
		if a.pod != nil {
			out = append(out, a.with(a.path, a.pod))
		}
	}
	return out
}

// lookProjection goes through what is asked of each element.
func (u *fieldWalk) lookProjection(e *jmespath.Expr, in fieldContext) fieldContext {
	each := u.look(e.Args[0], in).what
	if e.Op == jmespath.ValueProjection {
		each = each.values()
	} else {
		each = each.items()
	}
	if e.Op == jmespath.Filter {
		u.look(e.Args[2], valueContext(each))
	}
	return valueContext(u.listed(u.look(e.Args[1], valueContext(each)).what))
}

// lookSeveral goes through alternatives, or the values of a list. What is there twice
// counts once: of @ || @ there are no more alternatives than of @.
func (u *fieldWalk) lookSeveral(e *jmespath.Expr, in fieldContext) fieldContext {
	var out shape
	known := true
	for _, arg := range e.Args {
		if e.Op == jmespath.Or && isEmptyLiteral(arg) {
			continue
		}
		s := u.look(arg, in).what
		known = known && len(s) > 0
		out = append(out, s...)
	}
	out = out.unique()
	switch {
	case !known:
		return fieldContext{}
	case e.Op == jmespath.MultiList:
		out = u.listed(out)
	}
	return valueContext(out)
}

// isEmptyLiteral tells of a default without anything in it.
func isEmptyLiteral(e *jmespath.Expr) bool {
	if e.Op != jmespath.Literal {
		return false
	}
	switch v := e.Value.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	case string:
		return v == ""
	}
	return false
}

// unique is s with each alternative once.
func (s shape) unique() shape {
	seen := make(map[alternative]bool, len(s))
	var out shape
	for _, a := range s {
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

// listed are lists of the values.
func (u *fieldWalk) listed(s shape) shape {
	var out shape
	for _, a := range s {
		a = a.with(a.path, u.lists.of(a.typ))
		a.gathered = true
		out = append(out, a)
	}
	return out
}

// listTypes are the types of lists by those of their elements, each of which is one type.
type listTypes map[*schema.Type]*schema.Type

func (ts listTypes) of(elem *schema.Type) *schema.Type {
	if ts[elem] == nil {
		ts[elem] = &schema.Type{Kind: schema.List, Elem: elem}
	}
	return ts[elem]
}

// flattened are lists with the elements of those in them.
func (s shape) flattened() shape {
	var out shape
	for _, a := range s {
		switch {
		case a.typ.Kind != schema.List || a.typ.Elem.Kind == schema.Any:
			return nil
		case a.typ.Elem.Kind == schema.List:
			a = a.with(a.pathOfItems(), a.typ.Elem)
		}
		out = append(out, a)
	}
	return out
}

// values are those of a map.
func (s shape) values() shape {
	var out shape
	for _, a := range s {
		if a.typ.Kind != schema.Map {
			return nil
		}
		out = append(out, a.with(a.path+".*", a.typ.Elem))
	}
	return out
}
