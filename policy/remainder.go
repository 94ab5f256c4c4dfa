package policy

import "slices"

// Only is a copy of the policy's source with only some of its rules, chosen among
// what Expand returns, or nil if there are none. It judges every request as these
// rules of the policy do, and is what a user may apply: what the API server wrote
// into it is gone.
//
// A rule stays as it was written where what the engine then makes of it is what
// was chosen. Elsewhere, as when only its form for CronJob was chosen, the
// generated rules are written out and the policy asks for no expansion. It also
// does when only a rule that is left out kept it from being expanded.
func (p *Policy) Only(keep func(*Rule) bool) *Node {
	var chosen, written []*Rule
	for _, rule := range Expand(p) {
		if keep(rule) {
			chosen = append(chosen, rule)
			if rule.Expansion == "" {
				written = append(written, rule)
			}
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	some := *p
	some.Rules = written
	if sameRules(Expand(&some), chosen) {
		return p.withRules(written, false)
	}
	// Without expansion the rules as written are all there are; so with those
	// written out.
	return p.withRules(chosen, true)
}

func sameRules(a, b []*Rule) bool {
	return slices.EqualFunc(a, b, func(x, y *Rule) bool {
		return x.Index == y.Index && x.Expansion == y.Expansion
	})
}

func (p *Policy) withRules(rules []*Rule, unexpanded bool) *Node {
	list := &Node{Kind: List, Pos: p.Source.Get("spec").Get("rules").Pos}
	for _, rule := range rules {
		list.Items = append(list.Items, rule.Source)
	}
	doc := p.Source.with("status", nil)
	doc = doc.with("spec", doc.Get("spec").with("rules", list))
	meta := doc.Get("metadata")
	for _, key := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		meta = meta.with(key, nil)
	}
	if annotations := annotationsOf(meta, unexpanded); len(annotations.Fields) > 0 {
		meta = meta.with("annotations", annotations)
	}
	return doc.with("metadata", meta)
}

func annotationsOf(meta *Node, unexpanded bool) *Node {
	annotations := meta.Get("annotations")
	if annotations == nil || annotations.Kind != Map {
		annotations = &Node{Kind: Map, Pos: meta.Pos}
	}
	annotations = annotations.with("kubectl.kubernetes.io/last-applied-configuration", nil)
	if unexpanded {
		annotations = annotations.with(autogenControllers, &Node{Kind: String, Pos: annotations.Pos, Str: "none"})
	}
	return annotations
}
