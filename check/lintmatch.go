package check

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
)

// lintBootstrap tells of a policy that can keep the control plane from working: one
// that refuses requests when it errs or is violated, on what the control plane writes
// to stay alive, or on its own params.
func lintBootstrap(r *Result, s *anyPolicy, bindings []bound, set *schema.Set) {
	denies := len(bindings) == 0 || slices.ContainsFunc(bindings, func(b bound) bool { return b.does(admissionregistrationv1.Deny) })
	if !s.fails || !denies || s.asksWho() {
		return
	}
	for i, rule := range s.rules() {
		if !writes(rule) || len(rule.ResourceNames) > 0 {
			continue
		}
		if what := vitalOf(rule, s, bindings, set); what != "" {
			r.report(0, indexed("spec.matchConstraints.resourceRules", i), deadlock(what))
			return
		}
	}
}

// asksWho tells that a match condition asks who makes the request, or which it is:
// that is how the control plane is left out.
func (s *anyPolicy) asksWho() bool {
	return slices.ContainsFunc(s.expressions, func(e expression) bool {
		v, ok := s.tree(e)
		return e.role == condition && ok && (readsAny(v, "request", "userInfo", "resource", "kind") || slices.Contains(v.Idents(), "authorizer"))
	})
}

func writes(rule admissionregistrationv1.NamedRuleWithOperations) bool {
	return slices.ContainsFunc(rule.Operations, func(op admissionregistrationv1.OperationType) bool {
		return op == "*" || op == admissionregistrationv1.Create || op == admissionregistrationv1.Update
	})
}

// vitalOf is what of the vital resources a rule covers, in words; "" for none.
func vitalOf(rule admissionregistrationv1.NamedRuleWithOperations, s *anyPolicy, bindings []bound, set *schema.Set) string {
	system := reachesSystem(s, bindings)
	var found []string
	for _, v := range []struct{ group, version, plural string }{
		{"coordination.k8s.io", "v1", "leases"}, {"", "v1", "events"}, {"", "v1", "nodes"},
	} {
		resource, ok := set.ByResource(v.group, v.version, v.plural)
		if ok && covers(rule.RuleWithOperations, resource, "") && (system || !resource.Namespaced) {
			found = append(found, resource.Kind+"s")
		}
	}
	if s.paramKind != nil && denyMissing(bindings) {
		kind := schema.GVK(apischema.FromAPIVersionAndKind(s.paramKind.APIVersion, s.paramKind.Kind))
		if resource, ok := set.ByKind(kind); ok && covers(rule.RuleWithOperations, resource, "") {
			found = append(found, "its own params (kind "+kind.Kind+")")
		}
	}
	return strings.Join(found, ", ")
}

// denyMissing tells that a request is refused while the params are not there.
func denyMissing(bindings []bound) bool {
	return slices.ContainsFunc(bindings, func(b bound) bool {
		return b.param != nil && b.param.ParameterNotFoundAction != nil && *b.param.ParameterNotFoundAction == admissionregistrationv1.DenyAction
	})
}

// reachesSystem tells that a binding counts in kube-system or kube-node-lease.
func reachesSystem(s *anyPolicy, bindings []bound) bool {
	if s.constraints != nil && excludesSystem(s.constraints.NamespaceSelector) {
		return false
	}
	return len(bindings) == 0 || slices.ContainsFunc(bindings, func(b bound) bool {
		return b.does(admissionregistrationv1.Deny) && (b.match == nil || !excludesSystem(b.match.NamespaceSelector))
	})
}

func excludesSystem(selector *metav1.LabelSelector) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || selector == nil {
		return false
	}
	for _, name := range []string{"kube-system", "kube-node-lease"} {
		if compiled.Matches(labelsOf{"kubernetes.io/metadata.name": name}) {
			return false
		}
	}
	return true
}

// labelsOf are the labels of a namespace.
type labelsOf map[string]string

// Has tells that there is a label.
func (l labelsOf) Has(key string) bool { _, ok := l[key]; return ok }

// Get is the value of a label.
func (l labelsOf) Get(key string) string { return l[key] }

// Lookup is both.
func (l labelsOf) Lookup(key string) (string, bool) { v, ok := l[key]; return v, ok }

// lintSelectors tells of selectors that select otherwise than they look.
func lintSelectors(r *Result, m *admissionregistrationv1.MatchResources, rules []admissionregistrationv1.NamedRuleWithOperations, at string, set *schema.Set) {
	if m == nil {
		return
	}
	if selectsSome(m.NamespaceSelector) {
		if kinds := clusterScoped(rules, set); len(kinds) > 0 {
			r.report(0, at+".namespaceSelector", selectorOnClusterScoped(kinds))
		}
	}
	if !isEmptySelector(m.ObjectSelector) && slices.ContainsFunc(rules, updates) {
		r.report(0, at+".objectSelector", eitherObject())
	}
}

func updates(rule admissionregistrationv1.NamedRuleWithOperations) bool {
	return asksOn(rule, admissionregistrationv1.Update)
}

func isEmptySelector(s *metav1.LabelSelector) bool {
	return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0
}

// selectsSome tells that a selector wants a label, and does not only leave some out.
func selectsSome(s *metav1.LabelSelector) bool {
	return !isEmptySelector(s) && (len(s.MatchLabels) > 0 || slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
		return r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpExists
	}))
}

// clusterScoped are the kinds without a namespace that rules cover. A Namespace has
// labels of its own.
func clusterScoped(rules []admissionregistrationv1.NamedRuleWithOperations, set *schema.Set) []string {
	var out []string
	for _, resource := range set.Resources("*", "*", "*") {
		if resource.Namespaced || resource.Group == "" && resource.Kind == "Namespace" || exempt(resource) || slices.Contains(out, resource.Kind) {
			continue
		}
		if slices.ContainsFunc(rules, func(n admissionregistrationv1.NamedRuleWithOperations) bool {
			return covers(n.RuleWithOperations, resource, "")
		}) {
			out = append(out, resource.Kind)
		}
	}
	return out
}

// lintGone tells of API versions that a release does not serve: of the object itself,
// and of built-in groups that its rules name.
func (c *checking) lintGone(r *Result, s *anyPolicy, release cel.Release) {
	set := c.of(release).set
	if version, plural := strings.TrimPrefix(r.Object.apiVersion, group+"/"), pluralOf(r.Object); version != "" {
		if _, served := set.ByResource(group, version, plural); !served {
			r.report(release, "apiVersion", goneObject(r.Object.apiVersion, r.Object.Kind()))
		}
	}
	if s == nil {
		return
	}
	for i, rule := range s.rules() {
		at := indexed("spec.matchConstraints.resourceRules", i)
		if misnamed(r, release, at, rule.Rule, set) {
			continue
		}
		if servesNone(rule.Rule, set) {
			r.report(release, at+".apiVersions", goneRule(rule.APIGroups, rule.APIVersions, rule.Resources))
		}
	}
}

func pluralOf(o *Object) string {
	kind := strings.ToLower(o.Kind())
	if base, ok := strings.CutSuffix(kind, "policy"); ok {
		return base + "policies"
	}
	return kind + "s"
}

// misnamed tells of groups of Kubernetes' own, which have no dot in their names, and of resources
// that a release has in no version.
func misnamed(r *Result, release cel.Release, at string, rule admissionregistrationv1.Rule, set *schema.Set) (some bool) {
	all := set.Resources("*", "*", "*")
	named := func(entry string) string { name, _, _ := strings.Cut(entry, "/"); return name }
	for i, g := range rule.APIGroups {
		if g == "*" || strings.Contains(g, ".") || slices.ContainsFunc(all, func(known schema.Resource) bool { return known.Group == g }) {
			continue
		}
		some = true
		r.report(release, indexed(at+".apiGroups", i), goneGroup(g, servedIn(all, func(known schema.Resource) bool {
			return slices.ContainsFunc(rule.Resources, func(entry string) bool { return named(entry) == known.Plural })
		})))
	}
	if some || slices.ContainsFunc(rule.APIGroups, func(g string) bool { return !isBuiltin(g) }) {
		return some
	}
	var plurals []string // of the groups of the rule
	for _, known := range all {
		if slices.Contains(rule.APIGroups, known.Group) {
			plurals = append(plurals, known.Plural)
		}
	}
	for i, entry := range rule.Resources {
		name := named(entry)
		if name == "*" || slices.Contains(plurals, name) {
			continue
		}
		some = true
		meant := diag.Nearest(name, plurals)
		for _, known := range all {
			if slices.Contains(rule.APIGroups, known.Group) && strings.EqualFold(known.Kind, name) {
				meant = known.Plural
			}
		}
		r.report(release, indexed(at+".resources", i), goneResource(name, rule.APIGroups, meant, servedIn(all, func(known schema.Resource) bool { return known.Plural == name })))
	}
	return some
}

// servedIn says of which groups some resources are.
func servedIn(all []schema.Resource, which func(schema.Resource) bool) (out []string) {
	for _, known := range all {
		if text := fmt.Sprintf("%s is of the group %q", known.Plural, known.Group); which(known) && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// servesNone tells that a release serves none of the groups and versions that a rule
// names, although it knows all of the groups.
func servesNone(rule admissionregistrationv1.Rule, set *schema.Set) bool {
	all := set.Resources("*", "*", "*")
	for _, g := range rule.APIGroups {
		if g == "*" || !isBuiltin(g) {
			return false
		}
		for _, resource := range all {
			if resource.Group == g && has(rule.APIVersions, resource.Version) && slices.ContainsFunc(rule.Resources, func(entry string) bool {
				name, _, _ := strings.Cut(entry, "/")
				return name == "*" || name == resource.Plural
			}) {
				return false
			}
		}
	}
	return len(rule.APIGroups) > 0
}
