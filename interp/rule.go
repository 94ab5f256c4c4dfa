package interp

import (
	"maps"

	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// A rule is a rule of a policy, read once for all requests.
type rule struct {
	*policy.Rule
	policy        *policy.Policy
	entries       []*contextEntry
	preconditions *conditions
	message       *text
	check         *check
	exceptions    []*exception
	cel           *celRule // nil if the rule has no CEL
	images        []*imageEntry
	properties    []property
}

// A property is what reports tell of the rule's results besides.
type property struct {
	name  string
	value *text
}

// reported are the rule's own properties of a result. One whose variables cannot be filled in is left
// out: it is no part of the verdict.
func (r *rule) reported(v *vars) map[string]string {
	out := map[string]string{}
	for _, p := range r.properties {
		if value, err := v.fillString(p.value); err == nil {
			out[p.name] = value
		}
	}
	return out
}

// with is the verdict with more properties.
func (v verdict) with(properties map[string]string) verdict {
	if len(properties) == 0 {
		return v
	}
	all := maps.Clone(properties)
	maps.Copy(all, v.properties)
	v.properties = all
	return v
}

// A check is what a rule, or an entry of foreach, wants of an object. The first
// of its parts that is there counts.
type check struct {
	deny       *conditions
	denies     bool
	pattern    *template
	anyPattern *template
	loops      []*loop
}

// A loop is an entry of foreach.
type loop struct {
	list          *jmespath.Expr
	listText      string
	listErr       error
	elementScope  *bool
	entries       []*contextEntry
	preconditions *conditions
	check         *check
}

func (in *Interpreter) readRule(p *policy.Policy, r *policy.Rule) *rule {
	out := &rule{Rule: r, policy: p, entries: readEntries(p, r.Context), preconditions: readConditions(r.Preconditions, denying)}
	for _, e := range in.exceptions {
		if e.names(p, r) {
			out.exceptions = append(out.exceptions, e)
		}
	}
	out.images = readImageEntries(p, r)
	for _, one := range r.Properties {
		out.properties = append(out.properties, property{one.Key, readText(one.Value, one.Pos)})
	}
	v := r.Validate
	if v == nil {
		return out
	}
	out.message = readText(v.Message.Value, v.Message.Pos)
	out.check = readCheck(p, v.Deny, v.Pattern, v.AnyPattern, v.ForEach)
	return out
}

func readCheck(p *policy.Policy, deny *policy.Deny, pattern, anyPattern *policy.Node, loops []*policy.ForEach) *check {
	c := &check{}
	if deny != nil {
		c.denies, c.deny = true, readConditions(deny.Conditions, denying)
	}
	if pattern != nil {
		c.pattern = readDocument(pattern)
	}
	if anyPattern != nil {
		c.anyPattern = readDocument(withFloats(anyPattern))
	}
	for _, f := range loops {
		c.loops = append(c.loops, readLoop(p, f))
	}
	return c
}

func readLoop(p *policy.Policy, f *policy.ForEach) *loop {
	l := &loop{
		listText: f.List.Value, elementScope: f.ElementScope,
		entries: readEntries(p, f.Context), preconditions: readConditions(f.Preconditions, denying),
		check: readCheck(p, f.Deny, f.Pattern, f.AnyPattern, f.ForEach),
	}
	l.list, l.listErr = parseQuery(f.List.Value, f.List.Pos)
	return l
}

// withFloats is a node whose integers are other numbers. The numbers of an
// anyPattern are, so that the text 5.0 equals its 5.
func withFloats(n *policy.Node) *policy.Node {
	if n == nil {
		return nil
	}
	out := *n
	switch n.Kind {
	case policy.Int:
		out.Kind, out.Float = policy.Float, float64(n.Int)
	case policy.List:
		out.Items = make([]*policy.Node, len(n.Items))
		for i, item := range n.Items {
			out.Items[i] = withFloats(item)
		}
	case policy.Map:
		out.Fields = make([]policy.Field, len(n.Fields))
		for i, f := range n.Fields {
			out.Fields[i] = policy.Field{Key: f.Key, Pos: f.Pos, Value: withFloats(f.Value)}
		}
	default:
	}
	return &out
}
