package interp

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kvap/kvap/interp/internal/wildcard"
	"github.com/kvap/kvap/policy"
)

// A filterInput is what filters are held to: the object that a rule judges, and who
// asks for what.
type filterInput struct {
	object    map[string]any
	kind      resourceKind
	operation string
	user      user
	// namespaceLabels are asked for when they are needed.
	namespaceLabels func() map[string]string
	// selected is what namespaceSelectors that ask for more than the name of the namespace
	// say, where nobody knows its labels; nil where they are known.
	selected *bool
}

// A user is who sends a request.
type user struct {
	name                string
	groups              []string
	roles, clusterRoles []string
	// bogus is a user whom no filter of match is about, whatever its wildcards.
	bogus bool
}

// unknown tells whether nothing is said of the user, as in a scan of objects
// that are there already.
func (u user) unknown() bool {
	return u.name == "" && len(u.groups) == 0 && len(u.roles) == 0 && len(u.clusterRoles) == 0
}

// ruleApplies tells whether a rule is about the subject: matched, and not
// excluded. A rule of a namespaced policy binds its own namespace only.
func ruleApplies(p *policy.Policy, r *policy.Rule, s *filterInput) bool {
	return appliesBetween(p, r, s, s)
}

// appliesBetween is ruleApplies with one input for match and another for exclude.
func appliesBetween(p *policy.Policy, r *policy.Rule, match, exclude *filterInput) bool {
	if p.Namespaced() && p.Namespace != metaText(match.object, "namespace") {
		return false
	}
	return blockMatches(r.Match, match) && asksFor(r.Match, match.kind) && !blockExcludes(r.Exclude, exclude)
}

// mayApply tells whether labels of the namespace decide that a rule is about the subject: with
// some it is, and with others it is not.
func mayApply(p *policy.Policy, r *policy.Rule, s *filterInput) bool {
	selected, passedOver := *s, *s
	yes, no := true, false
	selected.selected, passedOver.selected = &yes, &no
	return appliesBetween(p, r, &selected, &passedOver) && !appliesBetween(p, r, &passedOver, &selected)
}

// asksFor tells whether some filter sends requests of a kind to the rule. It matters
// for ephemeral containers, which match filters that do not.
func asksFor(b *policy.MatchBlock, k resourceKind) bool {
	if k != ephemeralContainers() {
		return true
	}
	return slices.ContainsFunc(b.Filters(), func(f *policy.Filter) bool {
		return len(f.Kinds) == 0 || slices.ContainsFunc(f.Kinds, func(text policy.Text) bool {
			selector, ok := parseKind(text.Value)
			return ok && selector.asksFor(k)
		})
	})
}

func blockMatches(b *policy.MatchBlock, s *filterInput) bool {
	if b == nil {
		return false
	}
	matches := func(f *policy.Filter) bool { return filterMatches(f, s, inMatch) }
	switch {
	case len(b.Any) > 0:
		return slices.ContainsFunc(b.Any, matches)
	case len(b.All) > 0:
		return !slices.ContainsFunc(b.All, func(f *policy.Filter) bool { return !matches(f) })
	case b.Legacy != nil:
		return matches(b.Legacy)
	}
	return false
}

func blockExcludes(b *policy.MatchBlock, s *filterInput) bool {
	if b == nil {
		return false
	}
	excludes := func(f *policy.Filter) bool { return filterMatches(f, s, inExclude) }
	switch {
	case len(b.Any) > 0:
		return slices.ContainsFunc(b.Any, excludes)
	case len(b.All) > 0:
		return !slices.ContainsFunc(b.All, func(f *policy.Filter) bool { return !excludes(f) })
	case b.Legacy != nil:
		return excludes(b.Legacy)
	}
	return false
}

// A filterPlace is where a filter stands; the places differ a little.
type filterPlace int

const (
	inMatch filterPlace = iota
	inExclude
	inException
)

// filterMatches tells whether everything that a filter gives holds. An empty
// filter matches nothing.
func filterMatches(f *policy.Filter, s *filterInput, at filterPlace) bool {
	byResource, byUser := givesResource(f), givesUser(f)
	if at == inMatch && s.user.unknown() {
		byUser = false
	}
	if !byResource && !byUser || at == inMatch && byUser && s.user.bogus {
		return false
	}
	return resourceMatches(f, s, at) && (!byUser || userMatches(f, s.user))
}

// givesResource tells whether a filter says anything about the resource.
func givesResource(f *policy.Filter) bool {
	return len(f.Kinds) > 0 || f.Name != nil && f.Name.Value != "" || len(f.Names) > 0 ||
		len(f.Namespaces) > 0 || len(f.Operations) > 0 || len(f.Annotations) > 0 ||
		f.Selector != nil || f.NamespaceSelector != nil
}

func givesUser(f *policy.Filter) bool {
	return len(f.Roles) > 0 || len(f.ClusterRoles) > 0 || len(f.Subjects) > 0
}

func resourceMatches(f *policy.Filter, s *filterInput, at filterPlace) bool {
	if at != inException && len(f.Operations) > 0 && !slices.Contains(f.Operations, s.operation) {
		return false
	}
	if len(f.Kinds) > 0 && !slices.ContainsFunc(f.Kinds, func(t policy.Text) bool {
		k, ok := parseKind(t.Value)
		return ok && k.matches(s.kind)
	}) {
		return false
	}
	name := objectName(s.object)
	if f.Name != nil && f.Name.Value != "" && !wildcard.Match(f.Name.Value, name) {
		return false
	}
	if len(f.Names) > 0 && !anyText(f.Names, name) {
		return false
	}
	if len(f.Namespaces) > 0 && !anyText(f.Namespaces, objectNamespace(s.object)) {
		return false
	}
	return hasAnnotations(s.object, f.Annotations) &&
		(f.Selector == nil || selects(f.Selector, metaMap(s.object, "labels"))) &&
		(f.NamespaceSelector == nil || namespaceSelected(f.NamespaceSelector, s, at))
}

// objectName is the name, or what it will be generated from.
func objectName(object map[string]any) string {
	if name := metaText(object, "name"); name != "" {
		return name
	}
	return metaText(object, "generateName")
}

// objectNamespace is the namespace that a filter's namespaces are about; of a
// Namespace, it is its own name.
func objectNamespace(object map[string]any) string {
	if object["kind"] == "Namespace" {
		return metaText(object, "name")
	}
	return metaText(object, "namespace")
}

func anyText(patterns []policy.Text, text string) bool {
	return slices.ContainsFunc(patterns, func(p policy.Text) bool { return wildcard.Match(p.Value, text) })
}

// hasAnnotations tells whether, for each wanted pair, some annotation matches
// it in key and value.
func hasAnnotations(object map[string]any, wanted []policy.Pair) bool {
	if len(wanted) == 0 {
		return true
	}
	actual := metaMap(object, "annotations")
	return !slices.ContainsFunc(wanted, func(want policy.Pair) bool { return !hasPair(actual, want) })
}

func hasPair(actual map[string]string, want policy.Pair) bool {
	for k, v := range actual {
		if wildcard.Match(want.Key, k) && wildcard.Match(want.Value, v) {
			return true
		}
	}
	return false
}

// namespaceSelected tells whether a namespaceSelector holds. A Namespace is in
// no namespace: a policy's filter does not match it, an exception's is not
// asked.
func namespaceSelected(sel *policy.Selector, s *filterInput, at filterPlace) bool {
	if s.object["kind"] == "Namespace" {
		return at == inException
	}
	if s.selected != nil && asksMore(sel) {
		return *s.selected
	}
	return selects(sel, s.namespaceLabels())
}

// asksMore tells whether a namespaceSelector asks for a label that is not made of the name.
func asksMore(sel *policy.Selector) bool {
	return sel != nil && (slices.ContainsFunc(sel.MatchLabels, func(l policy.Pair) bool { return l.Key != corev1.LabelMetadataName }) ||
		slices.ContainsFunc(sel.Expressions, func(e policy.SelectorExpression) bool { return e.Key != corev1.LabelMetadataName }))
}

// namespaceUnknown tells whether nobody knows the labels of the namespace of the request.
func (a *preparedRequest) namespaceUnknown() bool {
	return a.request.NamespaceUnknown && a.namespace != ""
}

func unknownNamespace() verdict {
	return say(Unknown, "the rule selects namespaces by labels that nobody gave")
}

// userMatches tells whether all that a filter says of the user holds: of each of
// roles, cluster roles and subjects one entry.
func userMatches(f *policy.Filter, u user) bool {
	if len(f.Roles) > 0 && !shares(f.Roles, u.roles) {
		return false
	}
	if len(f.ClusterRoles) > 0 && !shares(f.ClusterRoles, u.clusterRoles) {
		return false
	}
	return len(f.Subjects) == 0 || slices.ContainsFunc(f.Subjects, func(s policy.Subject) bool { return subjectMatches(s, u) })
}

// shares tells whether the two lists have a text in common. Roles have no
// wildcards.
func shares(wanted []policy.Text, actual []string) bool {
	return slices.ContainsFunc(wanted, func(t policy.Text) bool { return slices.Contains(actual, t.Value) })
}

func subjectMatches(s policy.Subject, u user) bool {
	switch s.Kind {
	case "ServiceAccount":
		return wildcard.Match("system:serviceaccount:"+s.Namespace+":"+s.Name, u.name)
	case "User":
		return wildcard.Match(s.Name, u.name)
	case "Group":
		return slices.ContainsFunc(u.groups, func(g string) bool { return wildcard.Match(s.Name, g) })
	}
	return false
}
