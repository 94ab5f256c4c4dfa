package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// Kyverno's default configuration keeps all policies away from what the control
// plane writes by itself. That configuration is no part of a policy, so it does not
// travel, and native policies see these objects.

// noteDefaultFilters tells of a rule on such objects.
func (l *lowering) noteDefaultFilters(targets []target) {
	if l.rule.Expansion != "" { // nobody asked for these kinds by name
		return
	}
	var written []string
	for _, t := range targets {
		if t.kindWild == "" {
			written = append(written, writtenByControlPlane(t.group, t.resource))
		}
	}
	if message := filtersMissed(written, l.enforces()); message != "" {
		l.at(l.rule.Match.Pos)
		l.note(diag.DefaultFilters, "%s", message)
	}
}

// noteConstraints is noteDefaultFilters of a ValidatingPolicy.
func noteConstraints(p *policy.Policy, rules []vap.ResourceRule, notes *diag.List) {
	var written []string
	for _, r := range rules {
		for _, group := range r.Groups {
			for _, resource := range r.Resources {
				if len(r.Names) == 0 {
					written = append(written, writtenByControlPlane(group, resource))
				}
			}
		}
	}
	if message := filtersMissed(written, slices.Contains(p.Validating.Actions, "Deny")); message != "" {
		*notes = append(*notes, diag.Warnf(p.Validating.MatchConstraints.Pos, diag.DefaultFilters, "%s", message))
	}
}

const everyKind = "every kind"

// writtenByControlPlane is the kind of a resource that the control plane writes by
// itself, "" of others. They are those of Kyverno's default filters, and Leases.
func writtenByControlPlane(group, resource string) string {
	switch group + "/" + resource {
	case "/events", "events.k8s.io/events":
		return "Event"
	case "/nodes":
		return "Node"
	case "/bindings":
		return "Binding"
	case "/pods/binding":
		return "Pod/binding"
	case "apps/replicasets":
		return "ReplicaSet"
	case "coordination.k8s.io/leases":
		return "Lease"
	case "apiregistration.k8s.io/apiservices":
		return "APIService"
	case "authentication.k8s.io/tokenreviews":
		return "TokenReview"
	case "authorization.k8s.io/subjectaccessreviews":
		return "SubjectAccessReview"
	case "authorization.k8s.io/selfsubjectaccessreviews":
		return "SelfSubjectAccessReview"
	}
	if strings.HasPrefix(resource, "*") {
		return everyKind
	}
	return ""
}

// filtersMissed says what it means that a rule is on some of these kinds; "" where
// that is nothing.
func filtersMissed(written []string, denies bool) string {
	written = slices.DeleteFunc(written, func(kind string) bool { return kind == "" })
	slices.Sort(written)
	written = slices.Compact(written)
	what := ""
	switch {
	case slices.Contains(written, everyKind) && denies:
		what = "the rule is on every kind, and can deny the Events, Leases and Nodes that the control plane writes"
	case slices.Contains(written, everyKind):
		what = "the rule is on every kind, and so judges all Events, Leases and Nodes that the control plane writes"
	case len(written) > 0 && denies:
		what = "the rule can deny what the control plane writes by itself (" + strings.Join(written, ", ") + ")"
	default:
		return ""
	}
	return what + "; Kyverno's default resource filters keep policies away from these, and do not travel with a policy: exclude what it is not meant for"
}
