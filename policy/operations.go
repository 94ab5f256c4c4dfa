package policy

import "slices"

// LimitOperations gives validate rules that list no operations those that Kyverno's
// documentation names, CREATE and UPDATE, though Kyverno judges them on all four. A
// rule that asks for the operation itself, or names what can only be connected to,
// stays as it is: it would be void. What CEL reads is for the caller to say.
func (p *Policy) LimitOperations(cel FieldReader) {
	for _, r := range p.Rules {
		if r.Validate == nil || r.Match == nil || r.AsksForOperation(cel) || slices.ContainsFunc(r.Match.Filters(), (*Filter).choosesOperations) {
			continue
		}
		for _, f := range r.Match.Filters() {
			if len(f.Kinds) > 0 { // a filter without has no place for them, nor a native form
				f.Operations = documented()
			}
		}
		if match := r.Source.Get("match"); match != nil && match.Kind == Map {
			r.Source = r.Source.with("match", limited(match))
		}
	}
}

func documented() []string { return []string{"CREATE", "UPDATE"} }

// choosesOperations tells of a filter that lists operations, or that is for
// connections.
func (f *Filter) choosesOperations() bool {
	return len(f.Operations) > 0 || slices.ContainsFunc(f.Kinds, func(k Text) bool {
		s, ok := ParseKind(k.Value)
		return ok && s.isConnection()
	})
}

// isConnection tells of the kinds and subresources that are connected to.
func (s KindSelector) isConnection() bool {
	switch s.Subresource {
	case "exec", "attach", "portforward", "proxy":
		return true
	}
	switch s.Kind {
	case "PodExecOptions", "PodAttachOptions", "PodPortForwardOptions", "PodProxyOptions", "ServiceProxyOptions", "NodeProxyOptions":
		return true
	}
	return false
}

// limited is a match block in which all filters list the documented operations.
func limited(match *Node) *Node {
	for _, key := range []string{"any", "all"} {
		if list := match.Get(key); list != nil && list.Kind == List {
			copied := *list
			copied.Items = make([]*Node, len(list.Items))
			for i, filter := range list.Items {
				copied.Items[i] = limitedFilter(filter)
			}
			match = match.with(key, &copied)
		}
	}
	return limitedFilter(match)
}

// limitedFilter is one filter, or a match block in the legacy form.
func limitedFilter(filter *Node) *Node {
	resources := filter.Get("resources")
	if resources == nil || resources.Kind != Map {
		return filter
	}
	return filter.with("resources", resources.with("operations", texts(resources, documented())))
}
