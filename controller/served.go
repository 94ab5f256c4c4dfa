package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// Served is which kinds a cluster serves: those of its release and of its definitions, and
// beside them, where one is asked for that is not among them, those that it tells of.
type served struct {
	schemas *schema.Set
	ask     func() ([]*metav1.APIResourceList, error)

	asked bool
	lists []*metav1.APIResourceList
	err   error
	// late are the groups and versions of kinds that are defined and not served yet.
	late []string
}

// discovered asks a cluster what it serves.
func discovered(d discovery.DiscoveryInterface) func() ([]*metav1.APIResourceList, error) {
	return func() ([]*metav1.APIResourceList, error) {
		_, lists, err := d.ServerGroupsAndResources()
		return lists, err
	}
}

// has tells that the cluster serves a kind that a rule names, or may do so: some groups
// cannot be asked for while what serves them is away.
func (s *served) has(text string) bool {
	k, ok := policy.ParseKind(text)
	if !ok {
		return false
	}
	return k.Kind == "*" || s.knows(s.schemas.Resources(k.Group, k.Version, k.Kind), k.Group, k.Version,
		func(r metav1.APIResource) bool { return policy.Wildcard(k.Kind, r.Kind) })
}

// hasResource is has for what a ValidatingPolicy names.
func (s *served) hasResource(group, version, resource string) bool {
	resource, _, _ = strings.Cut(resource, "/")
	var defined []schema.Resource
	if r, ok := s.schemas.ByResource(group, version, resource); ok {
		defined = append(defined, r)
	}
	return resource == "*" || s.knows(defined, group, version, func(r metav1.APIResource) bool { return r.Name == resource })
}

// knows tells that one of some resources is built in, or that the cluster tells of one. What
// is defined is served a moment later.
func (s *served) knows(defined []schema.Resource, group, version string, is func(metav1.APIResource) bool) bool {
	custom := false
	for _, r := range defined {
		switch {
		case r.Guessed:
		case !s.schemas.Custom(r.GVK):
			return true
		default:
			custom = true
		}
	}
	if custom && s.ask == nil || s.tells(group, version, is) {
		return true
	}
	if custom {
		s.late = append(s.late, group+"/"+version)
	}
	return false
}

func (s *served) tells(group, version string, is func(metav1.APIResource) bool) bool {
	if !s.asked && s.ask != nil {
		s.asked = true
		s.lists, s.err = s.ask()
	}
	for _, list := range s.lists {
		of, err := apischema.ParseGroupVersion(list.GroupVersion)
		if err == nil && policy.Wildcard(group, of.Group) && policy.Wildcard(version, of.Version) && slices.ContainsFunc(list.APIResources, is) {
			return true
		}
	}
	var failed *discovery.ErrGroupDiscoveryFailed
	if !errors.As(s.err, &failed) {
		return s.err != nil
	}
	for of := range failed.Groups {
		if policy.Wildcard(group, of.Group) {
			return true
		}
	}
	return false
}

// kindsOf are the kinds that a rule matches, and those of them that the cluster does not
// serve.
func (s *served) kindsOf(r *compile.Rule) (all int, missing []string) {
	note := func(name string, there bool) {
		if all++; !there && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if constraints := r.Policy.MatchConstraints(); constraints != nil {
		for _, c := range constraints.Rules {
			for _, resource := range c.Resources {
				note(resource, slices.ContainsFunc(c.Groups, func(group string) bool {
					return slices.ContainsFunc(c.Versions, func(version string) bool { return s.hasResource(group, version, resource) })
				}))
			}
		}
	}
	if r.Source == nil || r.Source.Match == nil {
		return all, missing
	}
	filters := slices.Concat(r.Source.Match.Any, r.Source.Match.All)
	if legacy := r.Source.Match.Legacy; legacy != nil {
		filters = append(filters, legacy)
	}
	for _, f := range filters {
		for _, k := range f.Kinds {
			note(k.Value, s.has(k.Value))
		}
	}
	return all, missing
}

// kindsServed is false where a rule is about no kind that the cluster serves: it judges
// nothing, be it that its kind is misspelt, or defined later.
func (o *passResult) kindsServed(m *conditionSet, rules []*compile.Rule) {
	s := o.served
	if s == nil {
		s = &served{schemas: o.schemas}
	}
	some := ""
	for _, r := range rules {
		all, missing := s.kindsOf(r)
		if len(missing) == 0 {
			continue
		}
		text := fmt.Sprintf("the cluster serves no kind %s, which rule %s matches", strings.Join(missing, ", "), r.Name())
		if all == len(missing) {
			m.no(v1alpha1.ConditionKindsServed, "NotServed", "%s: it judges nothing until the kind is defined; see that it is spelt right", text)
			return
		}
		if some == "" {
			some = text
		}
	}
	if some != "" {
		m.yes(v1alpha1.ConditionKindsServed, "SomeNotServed", "%s, beside others", some)
		return
	}
	m.yes(v1alpha1.ConditionKindsServed, "Served", "the cluster serves all kinds that the rules match")
}
