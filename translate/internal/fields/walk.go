package fields

import (
	"maps"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
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
