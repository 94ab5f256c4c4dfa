package policy

import "slices"

// AsRule is a policy with one rule, which denies the creation of whatever the cleanup policy
// deletes, and nothing of which an expression is an error. What the cleanup policy calls target is a
// variable of the rule; what else a rule knows of a request, a cleanup policy does not. A kind is
// meant alone, and not with the controllers of Pods.
func (c *Cleanup) AsRule() *Policy {
	target := &ContextEntry{Pos: c.Pos, Name: "target", Variable: &VariableEntry{Pos: c.Pos, JMESPath: &Text{Pos: c.Pos, Value: "request.object"}}}
	rule := &Rule{
		Pos: c.Pos, Name: c.Name, Origin: c.Name, SkipBackground: true,
		Match: c.Match.onCreation(), Exclude: c.Exclude.onCreation(),
		Context: append([]*ContextEntry{target}, c.Context...), Preconditions: c.Conditions,
		Validate: &Validate{Pos: c.Pos, Action: Enforce, Deny: &Deny{Pos: c.Pos}},
		Deletes:  true, Source: c.Source,
	}
	p := &Policy{
		Pos: c.Pos, APIVersion: "kyverno.io/v1", Kind: "ClusterPolicy", Name: c.Name,
		Labels: textsOf(c.Source.Get("metadata").Get("labels")), Annotations: textsOf(c.Source.Get("metadata").Get("annotations")),
		Action: Enforce, FailurePolicy: Ignore, Admission: true, Background: true,
		Rules: []*Rule{rule}, Source: c.Source,
	}
	p.Annotations[autogenControllers] = "none"
	if c.Kind == "CleanupPolicy" {
		p.Kind, p.Namespace = "Policy", c.Namespace
	}
	return p
}

// onCreation is a block about the creation of what it is about.
func (m *MatchBlock) onCreation() *MatchBlock {
	if m == nil {
		return nil
	}
	out := *m
	for _, filters := range []*[]*Filter{&out.Any, &out.All} {
		*filters = slices.Clone(*filters)
		for i, f := range *filters {
			one := *f
			one.Operations = []string{"CREATE"}
			(*filters)[i] = &one
		}
	}
	return &out
}

// textsOf are the texts of a map.
func textsOf(n *Node) map[string]string {
	out := map[string]string{}
	if n != nil {
		for _, f := range n.Fields {
			out[f.Key] = f.Value.text()
		}
	}
	return out
}
