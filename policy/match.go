package policy

import "github.com/kvap/kvap/diag"

// match reads a match or exclude block in any of its three forms. The legacy form
// is a filter written into the block itself.
func (r *reader) match(n *Node, what string) *MatchBlock {
	o := r.object(n, what)
	m := &MatchBlock{Pos: n.Pos}
	m.Any = each(o.list("any"), r.filter)
	m.All = each(o.list("all"), r.filter)
	if !r.beta {
		m.Legacy = r.legacyFilter(o)
	}
	o.end()
	forms := 0
	for _, present := range []bool{len(m.Any) > 0, len(m.All) > 0, m.Legacy != nil} {
		if present {
			forms++
		}
	}
	if forms > 1 {
		r.warn(n.Pos, diag.Conflict, "%s has more than one of any, all and the legacy form; the first of these counts and the others are ignored", what)
	}
	if forms == 0 && what == "match" && !o.wrong {
		r.fail(n.Pos, diag.Missing, "match is empty, so the rule would never apply; name kinds under match.any[].resources")
	}
	return m
}

// legacyFilter is nil unless one of its keys is there.
func (r *reader) legacyFilter(o *object) *Filter {
	f := &Filter{Pos: o.node.Pos}
	present := false
	for _, key := range []string{"resources", "roles", "clusterRoles", "subjects"} {
		present = o.take(key) != nil || present
	}
	r.filterFields(f, o)
	if !present {
		return nil
	}
	return f
}

func (r *reader) filter(n *Node) *Filter {
	o := r.object(n, "a filter")
	f := &Filter{Pos: n.Pos}
	r.filterFields(f, o)
	o.end()
	return f
}

func (r *reader) filterFields(f *Filter, o *object) {
	if n := o.take("resources"); n != nil {
		r.resources(f, n)
	}
	f.Roles = o.texts("roles")
	f.ClusterRoles = o.texts("clusterRoles")
	f.Subjects = each(o.list("subjects"), r.subject)
}

func (r *reader) resources(f *Filter, n *Node) {
	o := r.object(n, "resources")
	f.Kinds = o.texts("kinds")
	f.Name = o.optional("name")
	if f.Name != nil && f.Name.Value == "" {
		f.Name = nil // as absent
	}
	f.Names = o.texts("names")
	f.Namespaces = o.texts("namespaces")
	f.Operations = o.choices("operations", "CREATE", "UPDATE", "DELETE", "CONNECT")
	f.Annotations = o.pairs("annotations")
	f.Selector = r.selector(o.take("selector"))
	f.NamespaceSelector = r.selector(o.take("namespaceSelector"))
	o.end()
}

func (r *reader) subject(n *Node) Subject {
	o := r.object(n, "a subject")
	s := Subject{Pos: n.Pos, Kind: o.needText("kind").Value, Name: o.needText("name").Value, Namespace: o.str("namespace")}
	o.str("apiGroup")
	o.end()
	switch s.Kind {
	case "User", "Group", "ServiceAccount", "":
	default:
		r.fail(n.Pos, diag.OutOfRange, "a subject of kind %q never matches; the kinds are User, Group and ServiceAccount", s.Kind)
	}
	return s
}

// selector reads a label selector; nil when absent.
func (r *reader) selector(n *Node) *Selector {
	if n == nil {
		return nil
	}
	o := r.object(n, "a selector")
	s := &Selector{Pos: n.Pos, MatchLabels: o.pairs("matchLabels")}
	s.Expressions = each(o.list("matchExpressions"), r.selectorExpression)
	o.end()
	return s
}

func (r *reader) selectorExpression(n *Node) SelectorExpression {
	o := r.object(n, "a match expression")
	e := SelectorExpression{Pos: n.Pos, Key: o.needText("key").Value, Values: o.strings("values")}
	e.Operator = r.choice(o.require("operator"), "In", "NotIn", "Exists", "DoesNotExist")
	o.end()
	switch e.Operator {
	case "In", "NotIn":
		if len(e.Values) == 0 {
			r.fail(n.Pos, diag.Missing, "a match expression with operator %s needs values", e.Operator)
		}
	case "Exists", "DoesNotExist":
		if len(e.Values) > 0 {
			r.fail(o.pos("values"), diag.Conflict, "a match expression with operator %s cannot have values; remove them", e.Operator)
		}
	}
	return e
}
