package schema

import (
	"slices"
	"strings"
)

// Resources are the resources whose kind matches the three patterns, by group,
// version and kind. In a pattern * stands for any text and ? for one character,
// as in a policy's kinds; the core group is the empty text, and only a wildcard
// or the empty pattern matches it.
//
// A kind can come in several versions (autoscaling/v1 and v2
// HorizontalPodAutoscaler) and groups ("" and events.k8s.io Event): all are here.
//
// A kind without wildcards that matches nothing is one that projects publish: see
// WithPublished. Where group or version is a pattern, there is one resource for all that
// are published, with the patterns, since a cluster may have others; Type is what they
// have in common. A kind that is not published either is guessed: see guess.
func (s *Set) Resources(group, version, kind string) []Resource {
	var found []Resource
	for _, r := range s.resources {
		if matchPattern(group, r.Group) && matchPattern(version, r.Version) && matchPattern(kind, r.Kind) {
			found = append(found, r.clone())
		}
	}
	if len(found) > 0 || kind == "" || isPattern(kind) {
		return found
	}
	found = s.Published(group, version, kind)
	switch {
	case len(found) == 0:
		return []Resource{guess(group, version, kind, s.Published(group, "*", kind))}
	case isPattern(group) || isPattern(version):
		return []Resource{likeAll(GVK{group, version, kind}, found)}
	}
	return found
}

// likeAll is one resource for some that are published, and for others that are called so.
// The first says the plural.
func likeAll(k GVK, published []Resource) Resource {
	r := published[0]
	r.GVK, r.Guessed = k, true
	for _, p := range published {
		r.Published = append(r.Published, p.GVK)
	}
	for _, p := range published[1:] {
		r.Namespaced = r.Namespaced || p.Namespaced
		for _, sub := range p.Subresources {
			if _, ok := r.Subresource(sub.Name); !ok {
				r.Subresources = append(r.Subresources, sub)
			}
		}
	}
	for i, sub := range r.Subresources {
		if sub.GVK.Kind == k.Kind {
			r.Subresources[i].GVK = k
		}
	}
	return r
}

// Published are the published kinds of a name whose group and version match the patterns,
// and that the set does not know by itself. The newest version of a kind comes first.
func (s *Set) Published(group, version, kind string) []Resource {
	return s.publishedWhere(func(g, v, k, _ string) bool {
		return k == kind && matchPattern(group, g) && matchPattern(version, v)
	})
}

// guess is the resource that a kind most likely has. Group and version stay as
// they were given, be it patterns. It is namespaced, as most custom resources
// are; whoever depends on it asks Guessed and allows both. Where the kind is published
// in other versions, these have the plural.
func guess(group, version, kind string, others []Resource) Resource {
	r := Resource{
		GVK:        GVK{group, version, kind},
		Plural:     plural(kind),
		Namespaced: true,
		Guessed:    true,
	}
	if len(others) > 0 {
		r.Plural = others[0].Plural
	}
	return r
}

// plural is the lower-case English plural, as controller generators choose it for
// most kinds: Gateway gateways, Policy policies, Ingress ingresses. Irregular ones
// and kinds that are plural already (Redis, Endpoints) need their CRD.
func plural(kind string) string {
	p := strings.ToLower(kind)
	n := len(p)
	switch {
	case n == 0:
		return p
	case p[n-1] == 'y' && n > 1 && !strings.ContainsRune("aeiou", rune(p[n-2])):
		return p[:n-1] + "ies"
	case strings.ContainsRune("sxz", rune(p[n-1])), strings.HasSuffix(p, "ch"), strings.HasSuffix(p, "sh"):
		return p + "es"
	}
	return p + "s"
}

// ByResource is the resource with a plural in a group and version, none of them
// patterns. A subresource after a slash is passed over: pods/exec is of pods.
func (s *Set) ByResource(group, version, resource string) (Resource, bool) {
	name, _, _ := strings.Cut(resource, "/")
	for _, r := range s.resources {
		if r.Group == group && r.Version == version && r.Plural == name {
			return r.clone(), true
		}
	}
	if found := s.publishedWhere(func(g, v, _, plural string) bool { return g == group && v == version && plural == name }); len(found) > 0 {
		return found[0], true
	}
	return Resource{}, false
}

// ByKind is the resource of a kind. Several resources can have one kind only by
// mistake; the first counts.
func (s *Set) ByKind(kind GVK) (Resource, bool) {
	i, ok := slices.BinarySearchFunc(s.resources, kind, func(r Resource, k GVK) int { return r.GVK.Compare(k) })
	if !ok {
		return s.publishedKind(kind)
	}
	return s.resources[i].clone(), true
}

// Subresource is the subresource of a name, without slash.
func (r Resource) Subresource(name string) (Subresource, bool) {
	for _, sub := range r.Subresources {
		if sub.Name == name {
			return sub, true
		}
	}
	return Subresource{}, false
}

// clone lets callers write to the list of subresources.
func (r Resource) clone() Resource {
	r.Subresources = slices.Clone(r.Subresources)
	return r
}

func isPattern(s string) bool { return strings.ContainsAny(s, "*?") }

// matchPattern tells whether * (any runes, also none) and ? (one rune) make the
// pattern the text. It goes back to the last * only, so it is quadratic at worst.
func matchPattern(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	i, j, star, mark := 0, 0, -1, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
