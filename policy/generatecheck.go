package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
)

// checkGenerate refuses what Kyverno's admission refuses of a generate rule, as far
// as that can be told without a cluster.
func (r *reader) checkGenerate(p *Policy, rule *Rule) {
	g := rule.Generate
	for _, t := range g.targets() {
		r.checkTarget(t, g.Synchronize)
		if p.Kind == "Policy" {
			r.ownTarget(p, t)
		}
		if rule.Match == nil || rule.Match.Legacy == nil {
			continue
		}
		for _, k := range rule.Match.Legacy.Kinds {
			if s, ok := ParseKind(k.Value); ok && s.Kind == t.Kind.Value {
				r.fail(k.Pos, diag.Conflict, "the rule matches the kind that it generates, %s, so it would trigger itself; match another", s.Kind)
			}
		}
	}
}

// targets are all targets of the rule.
func (g *Generate) targets() []*GenerateTarget {
	if len(g.ForEach) == 0 {
		return []*GenerateTarget{&g.GenerateTarget}
	}
	out := make([]*GenerateTarget, len(g.ForEach))
	for i, f := range g.ForEach {
		out[i] = &f.GenerateTarget
	}
	return out
}

func (r *reader) checkTarget(t *GenerateTarget, synchronize bool) {
	r.noAnchors(t.Data)
	named := []Text{t.APIVersion, t.Kind}
	if t.Clone != nil {
		named = append(named, t.Clone.Namespace, t.Clone.Name)
	}
	if l := t.CloneList; l != nil {
		named = append(append(named, l.Namespace), l.Kinds...)
		r.noWildcards(l.Selector)
	}
	for _, text := range named {
		if synchronize && strings.Contains(text.Value, "{{") {
			r.warn(text.Pos, diag.Conflict, "what the rule made is not found again by a %s with variables, so synchronize may miss it; write the value itself", lastKey(text.Pos.Path))
		}
	}
}

// noAnchors refuses keys with anchors in data: data are no pattern.
func (r *reader) noAnchors(n *Node) {
	if n == nil {
		return
	}
	for _, f := range n.Fields {
		if open := strings.IndexByte(f.Key, '('); open >= 0 && open <= 1 && strings.HasSuffix(f.Key, ")") && strings.Contains("<+=X^", f.Key[:open]) {
			r.fail(f.Pos, diag.OutOfRange, "the data of a generate rule are no pattern, so the key %q cannot have an anchor; remove it", f.Key)
		}
		r.noAnchors(f.Value)
	}
	for _, item := range n.Items {
		r.noAnchors(item)
	}
}

func (r *reader) noWildcards(s *Selector) {
	if s == nil {
		return
	}
	for _, pair := range s.MatchLabels {
		if strings.ContainsAny(pair.Key+pair.Value, "*?") {
			r.fail(pair.Pos, diag.OutOfRange, "the selector of a cloneList cannot have wildcards; write out the labels")
		}
	}
}

// ownTarget keeps a namespaced policy in its namespace. The texts are compared as
// they stand, so a variable is refused too.
func (r *reader) ownTarget(p *Policy, t *GenerateTarget) {
	sources := []Text{t.Namespace}
	if t.Clone != nil {
		sources = append(sources, t.Clone.Namespace)
	}
	if t.CloneList != nil {
		sources = append(sources, t.CloneList.Namespace)
	}
	for _, namespace := range sources {
		if namespace.Value != p.Namespace {
			pos := namespace.Pos
			if pos.Line == 0 {
				pos = t.Pos
			}
			r.fail(pos, diag.Conflict, "a namespaced Policy generates and copies in its own namespace only; set namespace: %s, or make it a ClusterPolicy", p.Namespace)
		}
	}
}

// CheckScopes refuses generate rules whose targets have a namespace and a kind
// without, or the other way round. Namespaced tells of a kind; known is false for
// one that nobody knows.
func CheckScopes(p *Policy, namespaced func(apiVersion, kind string) (is, known bool)) diag.List {
	r := &reader{}
	for _, rule := range p.Rules {
		if rule.Generate == nil || rule.Invalid {
			continue
		}
		for _, t := range rule.Generate.targets() {
			if t.CloneList != nil {
				r.checkListScope(t.CloneList, namespaced)
				continue
			}
			is, known := namespaced(t.APIVersion.Value, t.Kind.Value)
			switch {
			case !known:
			case is && t.Namespace.Value == "":
				r.fail(t.Pos, diag.Missing, "objects of the kind %s are in namespaces, so the target needs one", t.Kind.Value)
			case !is && t.Namespace.Value != "":
				r.fail(t.Namespace.Pos, diag.Conflict, "objects of the kind %s are in no namespace; remove this one", t.Kind.Value)
			}
		}
	}
	return r.ds
}

func (r *reader) checkListScope(l *CloneList, namespaced func(apiVersion, kind string) (is, known bool)) {
	for _, k := range l.Kinds {
		i := strings.LastIndexByte(k.Value, '/')
		if i < 0 {
			r.fail(k.Pos, diag.OutOfRange, "a kind of a cloneList must be apiVersion/Kind, for instance v1/Secret")
			continue
		}
		is, known := namespaced(k.Value[:i], k.Value[i+1:])
		switch {
		case !known:
		case is && l.Namespace.Value == "":
			r.fail(k.Pos, diag.Missing, "objects of the kind %s are in namespaces, so the cloneList needs one", k.Value)
		case !is && l.Namespace.Value != "":
			r.fail(k.Pos, diag.Conflict, "objects of the kind %s are in no namespace; a cloneList with a namespace has none of them", k.Value)
		}
	}
}
