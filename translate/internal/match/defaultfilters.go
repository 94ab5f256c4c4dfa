package match

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// Kyverno's default configuration keeps all policies away from what the control
// plane writes by itself. That configuration is no part of a policy, so it does not
// travel, and native policies see these objects.

// NoteDefaultFilters tells of a rule on such objects.
func NoteDefaultFilters(l *read.Lowering, targets []native.Target) {
	if l.Rule.Expansion != "" { // nobody asked for these kinds by name
		return
	}
	var written []string
	for _, t := range targets {
		if t.KindWild == "" {
			written = append(written, WrittenBy(t.Group, t.Resource)...)
		}
	}
	if message := filtersMissed(written, enforces(l)); message != "" {
		l.SetPos(l.Rule.Pos)
		l.Note(diag.DefaultFilters, "%s", message)
	}
}

// NoteConstraints is NoteDefaultFilters of a ValidatingPolicy.
func NoteConstraints(p *policy.Policy, rules []vap.ResourceRule, notes *diag.List) {
	var written []string
	for _, r := range rules {
		for _, group := range r.Groups {
			for _, resource := range r.Resources {
				if len(r.Names) == 0 {
					written = append(written, WrittenBy(group, resource)...)
				}
			}
		}
	}
	if message := filtersMissed(written, slices.Contains(p.Validating.Actions, "Deny")); message != "" {
		*notes = append(*notes, diag.Warnf(p.Validating.MatchConstraints.Pos, diag.DefaultFilters, "%s", message))
	}
}

// EveryKind stands for the kinds of a filter that names none.
const EveryKind = "every kind"

// A writtenKind is a kind that the control plane writes by itself.
type writtenKind struct{ group, resource, kind string }

// controlPlaneKinds are those of Kyverno's default filters, and Leases.
func controlPlaneKinds() []writtenKind {
	return []writtenKind{
		{"", "events", "Event"},
		{"events.k8s.io", "events", "Event"},
		{"", "nodes", "Node"},
		{"", "bindings", "Binding"},
		{"", "pods/binding", "Pod/binding"},
		{"apps", "replicasets", "ReplicaSet"},
		{"coordination.k8s.io", "leases", "Lease"},
		{"apiregistration.k8s.io", "apiservices", "APIService"},
		{"authentication.k8s.io", "tokenreviews", "TokenReview"},
		{"authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"},
		{"authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"},
	}
}

// WrittenBy are the kinds among what a resource rule names, which may be all of a
// group.
func WrittenBy(group, resource string) []string {
	if group == "*" && strings.HasPrefix(resource, "*") {
		return []string{EveryKind}
	}
	var kinds []string
	for _, k := range controlPlaneKinds() {
		all := resource == "*/*" || resource == "*" && !strings.Contains(k.resource, "/")
		if (group == "*" || group == k.group) && (all || resource == k.resource) {
			kinds = append(kinds, k.kind)
		}
	}
	return kinds
}

// filtersMissed says what it means that a rule is on some of these kinds; "" where
// that is nothing.
func filtersMissed(written []string, denies bool) string {
	slices.Sort(written)
	written = slices.Compact(written)
	what := ""
	switch {
	case slices.Contains(written, EveryKind) && denies:
		what = "the rule is on every kind, and can deny the Events, Leases and Nodes that the control plane writes"
	case slices.Contains(written, EveryKind):
		what = "the rule is on every kind, and so judges all Events, Leases and Nodes that the control plane writes"
	case len(written) > 0 && denies:
		what = "the rule can deny what the control plane writes by itself (" + strings.Join(written, ", ") + ")"
	default:
		return ""
	}
	return what + "; Kyverno's default resource filters keep policies away from these, and do not travel with a policy: exclude what it is not meant for"
}
