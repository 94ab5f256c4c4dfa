package validity

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// anyKind refuses what a rule about every kind cannot ask, and kinds of which a scan reads no
// objects.
func (c *checker) anyKind(p *policy.Policy, rule *policy.Rule) {
	for _, f := range rule.Match.Filters() {
		i := slices.IndexFunc(f.Kinds, func(k policy.Text) bool { return k.Value == "*" })
		if i < 0 {
			c.subresources(p, rule, f)
			continue
		}
		pos := f.Kinds[i].Pos
		switch {
		case p.Background:
			c.fail(pos, diag.UnscannedKind, "a rule about every kind cannot be in a policy with background: true, the default; name the kinds, or set background: false")
		case len(f.Kinds) > 1:
			c.fail(pos, diag.UnscannedKind, "beside * there can be no other kind; remove the others, or *")
		case rule.Generate != nil || rule.VerifyImages != nil:
			c.fail(pos, diag.UnscannedKind, "a rule with %s cannot be about every kind; name the kinds", rule.Type())
		case rule.Validate != nil && len(rule.Validate.ForEach) > 0:
			c.fail(pos, diag.UnscannedKind, "a rule with foreach cannot be about every kind; name the kinds")
		case rule.Validate != nil:
			c.onlyMetadata(rule.Validate)
		}
	}
}

// onlyMetadata refuses patterns for every kind that ask for what not every object has.
func (c *checker) onlyMetadata(v *policy.Validate) {
	patterns := []*policy.Node{v.Pattern}
	if v.AnyPattern != nil {
		patterns = append(patterns, v.AnyPattern.Items...)
	}
	for _, n := range patterns {
		if n == nil {
			continue
		}
		for _, f := range n.Fields {
			if f.Key != "metadata" {
				c.fail(f.Pos, diag.UnscannedKind, "a pattern for every kind can ask for metadata only, not for %s; name the kinds", f.Key)
			}
		}
	}
}

// subresources refuses them where objects are scanned: none is kept.
func (c *checker) subresources(p *policy.Policy, rule *policy.Rule, f *policy.Filter) {
	if !p.Background || rule.Validate == nil {
		return
	}
	for _, k := range f.Kinds {
		if s, ok := policy.ParseKind(k.Value); ok && s.Subresource != "" {
			c.fail(k.Pos, diag.UnscannedKind, "%s is a subresource, of which no scan finds objects; set background: false", k.Value)
		}
	}
}

// scopes warns of kinds that nobody serves, and refuses those outside of namespaces in what is
// about one namespace.
func (c *checker) scopes(namespaced bool, match, exclude *policy.MatchBlock) {
	if c.kinds == nil {
		return
	}
	for _, f := range match.Filters() {
		for _, k := range f.Kinds {
			c.served(k)
		}
	}
	if !namespaced {
		return
	}
	for _, f := range slices.Concat(match.Filters(), exclude.Filters()) {
		for _, k := range f.Kinds {
			if found := c.find(k.Value); len(found) > 0 && !slices.ContainsFunc(found, func(r schema.Resource) bool { return r.Namespaced || r.Guessed }) {
				c.fail(k.Pos, diag.OutOfNamespace, "%s is a kind outside of namespaces, and the policy is about its own namespace only; remove the kind, or make it a policy of the cluster", k.Value)
			}
		}
	}
}

// served warns of a kind, or a subresource, that the cluster does not serve.
func (c *checker) served(k policy.Text) {
	s, ok := policy.ParseKind(k.Value)
	if !ok || strings.ContainsAny(s.Kind, "*?") {
		return
	}
	found := c.kinds(s.Group, s.Version, s.Kind)
	has := func(r schema.Resource) bool {
		_, ok := r.Subresource(s.Subresource)
		return ok || r.Guessed || s.Subresource == "" || strings.ContainsAny(s.Subresource, "*?") && len(r.Subresources) > 0
	}
	if !slices.ContainsFunc(found, has) {
		c.warn(k.Pos, diag.UnservedKind, "the cluster serves no kind %s, so the rule is about none of its objects until it does; correct the name, or install the kind", k.Value)
	}
}

// find are the resources of an entry of kinds that names one.
func (c *checker) find(kind string) []schema.Resource {
	s, ok := policy.ParseKind(kind)
	if !ok || strings.ContainsAny(s.Kind, "*?") {
		return nil
	}
	return c.kinds(s.Group, s.Version, s.Kind)
}

// scopeOf tells whether the objects of a kind are in namespaces.
func (c *checker) scopeOf(apiVersion, kind string) (namespaced, known bool) {
	if strings.Contains(apiVersion+kind, "{{") {
		return false, false
	}
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	kind, _, _ = strings.Cut(kind, "/")
	for _, r := range c.kinds(group, version, kind) {
		if !r.Guessed && r.Group == group {
			return r.Namespaced, true
		}
	}
	return false, false
}
