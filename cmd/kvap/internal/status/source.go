package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap"
)

// A Source is a policy as it is in the cluster.
type Source struct {
	Policy  *policy.Policy
	Found   diag.List // what reading it said
	Group   string    // of its kind
	Created time.Time
	// Generation is of the object, to tell whether a controller has seen it.
	Generation int64
}

// mode is what the source asks for; "" where it does not.
func (s *Source) mode() string {
	for _, from := range []map[string]string{s.Policy.Annotations, s.Policy.Labels} {
		if m := from[v1alpha1.ModeKey]; m != "" {
			return m
		}
	}
	return ""
}

// known are the policies of which something is in the cluster: the source, or what
// was made from it.
type known struct {
	all []*listedPolicy
	// by has two of one name where a policy is on its way from Kyverno's kind to that of
	// kvap.dev, and is there in both.
	by map[identity][]*listedPolicy
}

func (k *known) add(sub *listedPolicy) *listedPolicy {
	k.all = append(k.all, sub)
	k.by[sub.identity] = append(k.by[sub.identity], sub)
	return sub
}

// An identity is what a member's name says of its policy.
type identity struct {
	name string // with the namespace of a namespaced one
	in   family
}

// A family is kinds whose policies have names of their own.
type family string

// The families. That of policies with rules is empty.
const (
	validating family = "ValidatingPolicy"
	mutating   family = "MutatingPolicy"
	generating family = "GeneratingPolicy"
	images     family = "ImageValidatingPolicy"
)

// familyOf is the family of a kind.
func familyOf(kind string) family {
	switch f := family(strings.TrimPrefix(kind, "Namespaced")); f {
	case validating, mutating, generating, images:
		return f
	}
	return ""
}

// A listedPolicy is a source policy, or where that is not in the cluster what is left to
// say of it.
type listedPolicy struct {
	identity
	source      *Source                     // nil where it is not in the cluster
	translation *v1alpha1.PolicyTranslation // nil where there is no controller
	rules       []*rule
	claims      []claim
	stage       string // of its migration, in words; empty where there is none
	awaited     bool   // the cluster keeps PolicyTranslations, so there will be one
}

// A rule is a rule as written.
type rule struct {
	name     string
	compiled *compile.Rule        // nil where the source is not in the cluster, or has not to be asked
	row      *v1alpha1.RuleStatus // what the controller says; nil where there is none
	claims   []claim
}

// A claim is a member of a native policy.
type claim struct {
	*nativePolicy
	member int
}

// sources are the policies that are in the cluster, or of which a controller tells.
// Those of which none does are compiled.
func (c Snapshot) sources() *known {
	k := &known{by: map[identity][]*listedPolicy{}}
	for _, s := range c.Sources {
		k.add(&listedPolicy{identity: identity{s.Policy.FullName(), familyOf(s.Policy.Kind)}, source: s, awaited: c.Controller})
	}
	for _, t := range c.Translations {
		if t.Status.Cleanup != nil {
			continue // what deletes on a schedule may have the name of what judges
		}
		k.translated(t)
	}
	in := compile.Input{Exceptions: c.Exceptions}
	at := map[*policy.Policy]*listedPolicy{}
	for _, sub := range k.all {
		if s := sub.source; s != nil && len(sub.rules) == 0 {
			in.Policies, in.Found = append(in.Policies, s.Policy), append(in.Found, s.Found...)
			at[s.Policy] = sub
		}
	}
	if len(in.Policies) == 0 {
		return k
	}
	for _, r := range compile.Policies(in, c.Compile).Rules {
		sub := at[r.Policy]
		sub.rules = append(sub.rules, &rule{name: r.Name(), compiled: r})
	}
	return k
}

// owner is the policy that a member is of. Of two of its name it is the one that a
// controller has judged, and that of kvap.dev where it has both.
func (k *known) owner(m vap.TranslatedMember) *listedPolicy {
	id := identity{name: m.Policy}
	if !strings.HasPrefix(m.Path, "spec.rules") {
		id.in = validating
	}
	subs := k.by[id]
	if len(subs) == 0 {
		return k.add(&listedPolicy{identity: id})
	}
	best := subs[0]
	for _, sub := range subs[1:] {
		if sub.controlled() && (!best.controlled() || sub.group() == v1alpha1.Group) {
			best = sub
		}
	}
	return best
}

// group is that of the policy's kind; empty where only native objects tell of it.
func (s *listedPolicy) group() string {
	switch {
	case s.source != nil:
		return s.source.Group
	case s.translation != nil:
		return s.translation.Spec.Source.Group
	}
	return ""
}

// claim notes that a member of a native policy is of this one.
func (s *listedPolicy) claim(n *nativePolicy, member int) {
	c := claim{n, member}
	s.claims = append(s.claims, c)
	r := s.rule(originOf(n.translation.Members[member]))
	r.claims = append(r.claims, c)
}

// title is namespace, name and kind.
func (s *listedPolicy) title() (namespace, name, kind string) {
	if s.source != nil {
		p := s.source.Policy
		if p.Namespaced() {
			namespace = p.Namespace
		}
		return namespace, p.Name, p.Kind
	}
	if s.translation != nil {
		ref := s.translation.Spec.Source
		return ref.Namespace, ref.Name, ref.Kind
	}
	namespace, name, namespaced := strings.Cut(s.name, "/")
	if !namespaced {
		namespace, name = "", s.name
	}
	switch {
	case s.in == validating && namespaced:
		kind = "NamespacedValidatingPolicy"
	case s.in == validating:
		kind = "ValidatingPolicy"
	case namespaced:
		kind = "Policy"
	default:
		kind = "ClusterPolicy"
	}
	return namespace, name, kind
}

// translated notes what the controller says of a policy, which may have gone since.
func (k *known) translated(t *v1alpha1.PolicyTranslation) {
	id := identityOf(t.Spec.Source)
	var sub *listedPolicy
	if at := slices.IndexFunc(k.by[id], func(s *listedPolicy) bool { return s.group() == t.Spec.Source.Group }); at >= 0 {
		sub = k.by[id][at]
	} else {
		sub = k.add(&listedPolicy{identity: id})
	}
	sub.translation = t
	if sub.source != nil && t.Status.SourceGeneration != sub.source.Generation {
		return // what it says of rules is of another version
	}
	for i := range t.Status.Rules {
		row := &t.Status.Rules[i]
		sub.rule(row.Rule).row = row
	}
}

func identityOf(ref v1alpha1.PolicyReference) identity {
	id := identity{ref.Name, familyOf(ref.Kind)}
	if ref.Namespace != "" {
		id.name = ref.Namespace + "/" + ref.Name
	}
	return id
}

// migrated notes where a policy is on its way from Kyverno. One that is in the cluster
// no more has nothing to be said of.
func (k *known) migrated(m *v1alpha1.Migration) {
	stage := string(m.Status.Stage)
	if d := m.Status.Doing; d != nil {
		stage += ", " + d.Verb + " begun"
	}
	for _, sub := range k.by[identityOf(m.Spec.Source)] {
		sub.stage = stage
	}
}

// rule is the rule of a name.
func (s *listedPolicy) rule(name string) *rule {
	for _, r := range s.rules {
		if r.name == name {
			return r
		}
	}
	r := &rule{name: name}
	s.rules = append(s.rules, r)
	return r
}

// controlled tells that a controller looks after the policy.
func (s *listedPolicy) controlled() bool {
	return s.translation != nil && s.translation.Status.Mode != v1alpha1.ModeOff
}

// said is what the controller says of a condition. What it said of an earlier
// version of the policy is not known of this one.
func (s *listedPolicy) said(kind string) (report.Condition, bool) {
	if !s.controlled() {
		return report.Condition{}, false
	}
	for _, c := range s.translation.Status.Conditions {
		if c.Type != kind {
			continue
		}
		out := report.Condition{Type: kind, Status: string(c.Status), Reason: c.Reason, Message: c.Message}
		if seen := s.translation.Status.SourceGeneration; s.source != nil && seen != s.source.Generation {
			out.Status, out.Reason = unknown, "NotObserved"
			out.Message = fmt.Sprintf("the controller has seen generation %d of the policy, which is at %d; see that it runs", seen, s.source.Generation)
		}
		return out, true
	}
	return report.Condition{}, false
}
