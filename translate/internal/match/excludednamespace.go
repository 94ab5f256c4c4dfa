package match

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/scalar"
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
