package match

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
	"github.com/kvap/kvap/vap"
)

// Bindings leave some namespaces out, which a rule may be about all the same. Where its
// match says so by their names, its bindings do not leave them out:
//
//	namespaces: [kube-system]   counts in kube-system
//	namespaces: ["kube-*"]      counts in kube-system, kube-public and kube-node-lease
//	namespaces: ["*"]           counts where bindings count
//
// The webhook and the background are asked about none of these namespaces.

// Reaches are the namespaces of those that bindings leave out in which the rule counts.
func Reaches(o *api.Options, p *policy.Policy, r *policy.Rule) []string {
	if p.Namespaced() {
		return nil
	}
	var out []string
	for _, ns := range o.ExcludedNamespaces {
		if ns != o.OwnNamespace && named(r, ns) && !leavesOpen(r, ns) {
			out = append(out, ns)
		}
	}
	return out
}

// named tells that the rule is about a namespace that its match has by name.
func named(r *policy.Rule, ns string) bool {
	left := r.Exclude != nil && slices.ContainsFunc(query.Filters(r.Exclude), func(f *policy.Filter) bool {
		rest := *f
		rest.Namespaces = nil
		return namesNamespace(f, ns) && IsEmpty(&rest)
	})
	return !left && slices.ContainsFunc(query.Filters(r.Match), func(f *policy.Filter) bool { return namesNamespace(f, ns) })
}

// leavesOpen tells that the rule is also about objects in a namespace for no name that its
// match has: one of any filters leaves the namespace open.
func leavesOpen(r *policy.Rule, ns string) bool {
	return slices.ContainsFunc(r.Match.Any, func(f *policy.Filter) bool {
		open := len(f.Namespaces) == 0 || slices.ContainsFunc(f.Namespaces, func(t policy.Text) bool { return scalar.WildMatch(t.Value, ns) })
		return open && !namesNamespace(f, ns)
	})
}

// namesNamespace tells that a filter has a namespace by name, or the Namespace itself.
func namesNamespace(f *policy.Filter, ns string) bool {
	texts := f.Namespaces
	if slices.ContainsFunc(f.Kinds, isNamespaceKind) {
		texts = slices.Concat(texts, f.Names)
		if f.Name != nil {
			texts = append(texts, *f.Name)
		}
	}
	return slices.ContainsFunc(texts, func(t policy.Text) bool {
		return !native.AnyNamespace(t.Value) && scalar.WildMatch(t.Value, ns)
	})
}

func isNamespaceKind(kind policy.Text) bool {
	sel, ok := policy.ParseKind(kind.Value)
	return ok && sel.Kind == "Namespace" && selects(sel, schema.GVK{Version: "v1", Kind: "Namespace"})
}

// ExcludedNamespaces tells of namespaces that bindings leave out and the rule is about:
// that it counts there, or that it does not.
func ExcludedNamespaces(r *api.RuleResult, o *api.Options) (out diag.List) {
	at := r.Policy.Pos
	switch {
	case r.Target == api.Unsupported:
		return nil
	case r.Policy.Namespaced():
		if slices.Contains(o.ExcludedNamespaces, r.Policy.Namespace) {
			out = append(out, diag.Warnf(at, diag.ExcludedNamespace, "nothing judges the rule: it is of the namespace %s, "+
				"which --exclude-namespaces leaves out; take the namespace out of the flag, or move the policy", r.Policy.Namespace))
		}
		return out
	case r.Rule == nil:
		return o.DeadSelector(at, ConstraintsOf(r.Policy.MatchConstraints()).NamespaceSelector)
	}
	if r.Rule.Match != nil {
		at = r.Rule.Match.Pos
	}
	excluded := o.ExcludedNamespaces
	if r.Target == api.Webhook {
		for _, ns := range []string{"kube-system", "kube-node-lease"} { // which it is never asked about
			if !slices.Contains(excluded, ns) {
				excluded = append(slices.Clip(excluded), ns)
			}
		}
	}
	var counts, dead, open []string
	reached := Reaches(o, r.Policy, r.Rule)
	for _, ns := range excluded {
		switch {
		case !named(r.Rule, ns):
		case r.Target == api.Webhook || ns == o.OwnNamespace:
			dead = append(dead, ns)
		case slices.Contains(reached, ns):
			counts = append(counts, ns)
		default:
			open = append(open, ns)
		}
	}
	if len(counts) > 0 {
		out = append(out, diag.Warnf(at, diag.ExcludedNamespace, "the rule names %s and is judged there, where other rules are not "+
			"(--exclude-namespaces); Kyverno judges nothing there by default", strings.Join(counts, ", ")))
	}
	if len(dead) > 0 {
		out = append(out, diag.Warnf(at, diag.ExcludedNamespace, "nothing judges the rule in %s, which it names: the webhook is never asked about "+
			"kube-system, kube-node-lease and the namespaces of --exclude-namespaces, and no binding is for kvap's own", strings.Join(dead, ", ")))
	}
	if len(open) > 0 {
		out = append(out, diag.Warnf(at, diag.ExcludedNamespace, "nothing judges the rule in %s, which one of its filters names and another "+
			"leaves open; write a rule of its own for these namespaces, or set --exclude-namespaces none", strings.Join(open, ", ")))
	}
	for _, f := range query.Filters(r.Rule.Match) {
		if f.NamespaceSelector != nil && len(f.Namespaces) == 0 {
			out = append(out, o.DeadSelector(f.Pos, native.PlainSelector(f.NamespaceSelector))...)
		}
	}
	return out
}

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

// A selector of namespaces that all rules of a policy have is one of the objects:
//
//	match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {stage: prod}}}}]}
//
//	matchConstraints:
//	  namespaceSelector:
//	    matchLabels: {stage: prod}
//
// Otherwise each rule asks for the labels of namespaceObject, as one does that has wildcards,
// of which the API server's selectors know nothing.

// soleSelector is the plain selector of a block of one filter.
func soleSelector(m *policy.MatchBlock) *policy.Selector {
	fs := query.Filters(m)
	if len(fs) != 1 {
		return nil
	}
	s := fs[0].NamespaceSelector
	if s == nil || len(s.MatchLabels)+len(s.Expressions) == 0 || native.RefusedSelector(s) ||
		slices.ContainsFunc(s.MatchLabels, func(p policy.Pair) bool { return scalar.IsWild(p.Key) || scalar.IsWild(p.Value) }) {
		return nil
	}
	return s
}

// OwnSelector is the selector of the rule's own match that the object is left to ask for: the
// namespace of a namespaced object is asked for its labels, and nothing else is. It is nil
// where there is none.
func OwnSelector(l *read.Lowering) *policy.Selector {
	own := soleSelector(l.Rule.Match)
	if own == nil || l.Target.Scope != native.Namespaced || l.Target.IsAnyResource() || l.Opts.Pack == api.PackMatch {
		return nil
	}
	key := native.SelectorKey(native.PlainSelector(own))
	if l.Opts.Pack != api.PackRule && slices.ContainsFunc(l.Policy.Rules, func(r *policy.Rule) bool { // which share the object
		s := soleSelector(r.Match)
		return s == nil || native.SelectorKey(native.PlainSelector(s)) != key
	}) {
		return nil
	}
	return own
}

// NoteOwnObjects tells of a rule on what kvap's controller writes, or on deletions of
// policies, which are not judged.
func NoteOwnObjects(l *read.Lowering, units []pack.Unit) {
	var rules []vap.ResourceRule
	for _, u := range units {
		rule := vap.ResourceRule{Groups: []string{u.Target.Group}, Resources: []string{u.Target.Resource}}
		for _, op := range u.Operations {
			rule.Operations = append(rule.Operations, string(op))
		}
		rules = append(rules, rule)
	}
	if len(vap.OwnObjects(rules)) > 0 {
		*l.Notes = append(*l.Notes, ownObjects(l.Rule.Pos))
	}
}

// NoteOwnConstraints is NoteOwnObjects of a ValidatingPolicy.
func NoteOwnConstraints(p *policy.Policy, rules []vap.ResourceRule, notes *diag.List) {
	if len(vap.OwnObjects(rules)) > 0 {
		*notes = append(*notes, ownObjects(p.Validating.MatchConstraints.Pos))
	}
}

func ownObjects(at diag.Pos) diag.Diagnostic {
	return diag.Notef(at, diag.OwnObjects, "what kvap's controller writes to keep policies in force, and deletions of policies, "+
		"are not judged: no policy can keep its own controller from working, nor itself from being deleted")
}

// NoteUnasked tells of deletions and connections that a rule can deny though it
// never speaks of them: one that lists no operations is asked about all four,
// where its author will have thought of writes.
func NoteUnasked(l *read.Lowering, units []pack.Unit) {
	if l.Rule.AsksForOperation(cel.ReadsField) {
		return
	}
	for _, op := range []native.Operation{native.Delete, native.Connect} {
		judged := slices.ContainsFunc(units, func(u pack.Unit) bool { return slices.Contains(u.Operations, op) && !namesPart(l, u.Target) })
		asked := slices.ContainsFunc(query.Filters(l.Rule.Match), func(f *policy.Filter) bool { return slices.Contains(f.Operations, string(op)) })
		if judged && !asked {
			*l.Notes = append(*l.Notes, unasked(l, op))
		}
	}
}

// unasked matters most where the operation can be denied.
func unasked(l *read.Lowering, op native.Operation) diag.Diagnostic {
	tell, consequence := diag.Notef, "a violation is reported when the object is deleted"
	if op == native.Connect {
		consequence = "what connects to objects, as exec and proxy do, is reported"
	}
	if enforces(l) {
		tell, consequence = diag.Warnf, "an object that violates it cannot be deleted"
		if op == native.Connect {
			consequence = "what connects to objects, as exec and proxy do, can be denied"
		}
	}
	return tell(l.Rule.Pos, diag.UnaskedOperation, "the rule lists no operations, so it is judged on %s too: %s; "+
		"list operations in match, or convert with --operations create-update", op, consequence)
}

// namesPart tells of a subresource that the rule names, as exec: it has operations
// of its own, and who names it asks for them.
func namesPart(l *read.Lowering, t native.Target) bool {
	return t.Subresource != "" && slices.ContainsFunc(query.Filters(l.Rule.Match), func(f *policy.Filter) bool {
		return slices.ContainsFunc(f.Kinds, func(k policy.Text) bool {
			sel, ok := policy.ParseKind(k.Value)
			return ok && sel.Subresource == t.Subresource
		})
	})
}

// enforces tells whether a violation is denied anywhere.
func enforces(l *read.Lowering) bool {
	return read.Action(l) == policy.Enforce || slices.ContainsFunc(native.OverridesOf(l.Policy, l.Rule), func(o policy.ActionOverride) bool {
		return o.Action == policy.Enforce
	})
}
