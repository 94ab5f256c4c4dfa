package convert

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/webhook/registration"
)

// RequestCosts is what a request on each resource sets off before and after all
// policies have moved, the dearest first.
func (done *Compilation) RequestCosts(schemas *schema.Set) []report.RequestCost {
	kinds := schemaKinds{schemas}
	// A policy of kvap.dev has left Kyverno already.
	kyvernos := func(r *compile.Rule) bool { return !strings.HasPrefix(r.Policy.APIVersion, v1alpha1.Group+"/") }
	before := kyvernoHooks(done.only(kyvernos), kinds)
	staying := kyvernoHooks(done.only(func(r *compile.Rule) bool {
		return kyvernos(r) && (r.Target == translate.Unsupported || r.NotServed() != "")
	}), kinds)
	own := kvapHooks(done.only(func(r *compile.Rule) bool { return r.Target == translate.Webhook && r.NotServed() == "" }), kinds)
	var drafts []*vap.Draft
	for _, o := range done.Objects {
		drafts = append(drafts, o.Draft)
	}
	var out []report.RequestCost
	for _, r := range append(bestKnownFirst(append(resourcesIn(drafts), before.resources()...)), named{"*", "*"}) {
		c := report.RequestCost{
			Group: r.group, Resource: r.name, Before: report.CostBefore{Kyverno: before.called(r)},
			After: report.CostAfter{Kyverno: staying.called(r), Kvap: own.called(r), Objects: r.met(drafts)},
		}
		if c.Before.Kyverno+c.After.Kvap+c.After.Objects > 0 {
			out = append(out, c)
		}
	}
	weight := func(c report.RequestCost) int {
		return c.Before.Kyverno + c.After.Kyverno + c.After.Kvap + c.After.Objects
	}
	slices.SortStableFunc(out, func(a, b report.RequestCost) int { return cmp.Compare(weight(b), weight(a)) })
	return out
}

// only are the policies with those of their rules that are wanted; those without any
// are left out.
func (done *Compilation) only(wanted func(*compile.Rule) bool) []*policy.Policy {
	rules := map[*policy.Policy][]*policy.Rule{}
	for _, r := range done.Rules {
		if !r.Policy.Invalid && wanted(r) {
			rules[r.Policy] = append(rules[r.Policy], r.Source)
		}
	}
	var out []*policy.Policy
	for _, p := range done.Policies {
		if len(rules[p]) == 0 {
			continue
		}
		if !p.InCEL() {
			part := *p
			part.Rules = rules[p]
			p = &part
		}
		out = append(out, p)
	}
	return out
}

// hooks are the rules of webhooks, by what names one.
type hooks map[string][]admissionregistrationv1.RuleWithOperations

// add adds the rules of configurations; name names their webhooks.
func (h hooks) add(o registration.Configurations, name func(verb, webhook string) string) {
	if o.Validating != nil {
		for _, w := range o.Validating.Webhooks {
			h[name("validate", w.Name)] = append(h[name("validate", w.Name)], w.Rules...)
		}
	}
	if o.Mutating != nil {
		for _, w := range o.Mutating.Webhooks {
			h[name("mutate", w.Name)] = append(h[name("mutate", w.Name)], w.Rules...)
		}
	}
}

// kvapHooks are the webhooks of kvap for policies.
func kvapHooks(policies []*policy.Policy, kinds registration.Kinds) hooks {
	objects, _ := registration.Configure(policies, kinds, registration.Options{URL: "https://localhost"})
	out := hooks{}
	out.add(objects, func(verb, webhook string) string { return verb + " " + webhook })
	return out
}

// kyvernoHooks are the webhooks of Kyverno for policies: one to validate and one to
// mutate, for each failure policy; others for each policy with conditions of its own,
// and for the policies in CEL.
func kyvernoHooks(policies []*policy.Policy, kinds registration.Kinds) hooks {
	out := hooks{}
	for _, p := range policies {
		own := string(p.FailurePolicy)
		if p.InCEL() {
			own += " CEL"
		}
		if len(p.MatchConditions) > 0 {
			own += " " + p.FullName()
		}
		part := *p
		part.FailurePolicy, part.MatchConditions, part.Rules = policy.Ignore, nil, nil // none is left out
		// A rule that both validates and mutates is not repeated for pod controllers.
		for _, r := range policy.Expand(p) {
			part.Rules = append(part.Rules, asKyvernoAsks(r))
		}
		objects, _ := registration.Configure([]*policy.Policy{&part}, kinds, registration.Options{URL: "https://localhost"})
		out.add(objects, func(verb, _ string) string { return verb + " " + own })
	}
	return out
}

// asKyvernoAsks is a rule that is registered as Kyverno registers it: images are
// looked at by both of its webhooks.
func asKyvernoAsks(r *policy.Rule) *policy.Rule {
	if r.VerifyImages == nil {
		return r
	}
	both := *r
	both.Validate, both.Mutate = &policy.Validate{}, &policy.Mutate{}
	return &both
}

// called is how many of the webhooks a request calls that creates an object of a
// resource, or that updates one if those are more.
func (h hooks) called(r named) int {
	most := 0
	for _, op := range []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update} {
		n := 0
		for _, rules := range h {
			if slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
				return holds(rule.APIGroups, r.group) && (holds(rule.Resources, r.name) || slices.Contains(rule.Resources, "*/*")) &&
					slices.Contains(rule.Operations, op)
			}) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// resources are those that the webhooks name, without subresources.
func (h hooks) resources() (out []named) {
	for _, rules := range h {
		for _, rule := range rules {
			out = append(out, namedBy(rule.APIGroups, rule.Resources)...)
		}
	}
	return out
}

// schemaKinds are the kinds of which the types are known. Others are guessed.
type schemaKinds struct{ *schema.Set }

// Resources implements registration.Kinds.
func (k schemaKinds) Resources(group, version, kind string) []registration.Resource {
	var out []registration.Resource
	for _, r := range k.Set.Resources(group, version, kind) {
		served := registration.Resource{Group: r.Group, Version: r.Version, Kind: r.Kind, Plural: r.Plural, Namespaced: r.Namespaced}
		for _, s := range r.Subresources {
			served.Subresources = append(served.Subresources, s.Name)
		}
		out = append(out, served)
	}
	return out
}

// Meets is how many policy objects a request on each resource meets: what judging
// costs is nearly proportional to that. Where it is more than one, it is held against
// what --pack match would come to; for the first few only, which takes a part of the
// time that all take.
func (done *Compilation) Meets(pack translate.Pack, first int) []report.Meeting {
	var drafts []*vap.Draft
	for _, o := range done.Objects {
		drafts = append(drafts, o.Draft)
	}
	var out []report.Meeting
	for _, r := range resourcesIn(drafts) {
		n := r.met(drafts)
		out = append(out, report.Meeting{Group: r.group, Resource: r.name, Objects: n, WithMatch: n})
	}
	slices.SortStableFunc(out, func(a, b report.Meeting) int { return -cmp.Compare(a.Objects, b.Objects) })
	if pack == translate.PackMatch || len(out) == 0 || out[0].Objects < 2 {
		return out
	}
	compared := out[:min(first, len(out))]
	packed, ok := done.packedByMatch(func(group, resource string) bool {
		rule := vap.ResourceRule{Groups: []string{group}, Resources: []string{resource}}
		return slices.ContainsFunc(compared, func(m report.Meeting) bool { return named{m.Group, m.Resource}.isAmong(rule) })
	})
	for i, m := range compared {
		if ok {
			compared[i].WithMatch = named{m.Group, m.Resource}.met(packed)
		}
	}
	return out
}

// isAmong tells that a rule is about the resource.
func (r named) isAmong(rule vap.ResourceRule) bool {
	return holds(rule.Groups, r.group) && (holds(rule.Resources, r.name) || slices.Contains(rule.Resources, "*/*"))
}

// A named resource is one that policy objects name.
type named struct{ group, name string }

// resourcesIn are the resources that drafts name, without subresources: those that
// people know first, then by name.
func resourcesIn(drafts []*vap.Draft) []named {
	var out []named
	for _, d := range drafts {
		for _, rule := range d.Constraints.Rules {
			out = append(out, namedBy(rule.Groups, rule.Resources)...)
		}
	}
	return bestKnownFirst(out)
}

// namedBy are the resources that a resource rule names, without subresources.
func namedBy(groups, resources []string) (out []named) {
	for _, g := range groups {
		for _, name := range resources {
			if g != "*" && !strings.ContainsAny(name, "*/") {
				out = append(out, named{g, name})
			}
		}
	}
	return out
}

// bestKnownFirst are the resources, each once: those that people know first, then by
// name.
func bestKnownFirst(list []named) []named {
	known := []string{"pods", "deployments", "services", "configmaps", "secrets", "ingresses", "jobs", "statefulsets", "namespaces"}
	place := func(r named) int {
		if i := slices.Index(known, r.name); i >= 0 {
			return i
		}
		return len(known)
	}
	slices.SortFunc(list, func(a, b named) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.name, b.name), cmp.Compare(a.group, b.group))
	})
	return slices.Compact(list)
}

// met is how many of the drafts a request meets that creates one, or that updates
// one if those are more.
func (r named) met(drafts []*vap.Draft) int {
	most := 0
	for _, op := range []string{"CREATE", "UPDATE"} {
		n := 0
		for _, d := range drafts {
			if slices.ContainsFunc(d.Constraints.Rules, func(rule vap.ResourceRule) bool {
				return r.isAmong(rule) && holds(rule.Operations, op)
			}) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// holds tells that a list of a resource rule has a word, or stands for all.
func holds(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, "*")
}
