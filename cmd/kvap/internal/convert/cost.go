package convert

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
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
	own := hooks{}
	own.add(done.only(func(r *compile.Rule) bool { return r.Target == translate.Webhook && r.NotServed() == "" }), kinds,
		func(verb, webhook string) string { return verb + " " + webhook })
	objects := done.objects()
	for _, o := range done.Mutating {
		objects = append(objects, o.Draft.Constraints.Rules)
	}
	var out []report.RequestCost
	for _, r := range append(resourcesIn(slices.Concat(objects, before)), named{"*", "*"}) {
		c := report.RequestCost{
			Group: r.group, Resource: r.name, Before: report.CostBefore{Kyverno: r.met(before)},
			After: report.CostAfter{Kyverno: r.met(staying), Kvap: r.met(own.list()), Objects: r.met(objects)},
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

// objects are the native objects that validate, each by its resource rules.
func (done *Compilation) objects() (out [][]vap.ResourceRule) {
	for _, o := range done.Objects {
		out = append(out, o.Draft.Constraints.Rules)
	}
	return out
}

// hooks are the resource rules of webhooks, by what names one.
type hooks map[string][]vap.ResourceRule

// add adds the webhooks for policies; name names them.
func (h hooks) add(policies []*policy.Policy, kinds registration.Kinds, name func(verb, webhook string) string) {
	add := func(webhook string, rules []admissionregistrationv1.RuleWithOperations) {
		for _, r := range rules {
			h[webhook] = append(h[webhook], vap.ResourceRule{Groups: r.APIGroups, Resources: r.Resources, Operations: input.Words(r.Operations...)})
		}
	}
	objects, _ := registration.Configure(policies, kinds, registration.Options{URL: "https://localhost"})
	if objects.Validating != nil {
		for _, w := range objects.Validating.Webhooks {
			add(name("validate", w.Name), w.Rules)
		}
	}
	if objects.Mutating != nil {
		for _, w := range objects.Mutating.Webhooks {
			add(name("mutate", w.Name), w.Rules)
		}
	}
}

func (h hooks) list() [][]vap.ResourceRule { return slices.Collect(maps.Values(h)) }

// kyvernoHooks are the webhooks of Kyverno for policies: one to validate and one to
// mutate, for each failure policy; others for each policy with conditions of its own,
// and for the policies in CEL.
func kyvernoHooks(policies []*policy.Policy, kinds registration.Kinds) [][]vap.ResourceRule {
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
			if r.VerifyImages != nil { // images are looked at by both of its webhooks
				both := *r
				both.Validate, both.Mutate = &policy.Validate{}, &policy.Mutate{}
				r = &both
			}
			part.Rules = append(part.Rules, r)
		}
		out.add([]*policy.Policy{&part}, kinds, func(verb, _ string) string { return verb + " " + own })
	}
	return out.list()
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
	objects := done.objects()
	var out []report.Meeting
	for _, r := range resourcesIn(objects) {
		n := r.met(objects)
		out = append(out, report.Meeting{Group: r.group, Resource: r.name, Objects: n, WithMatch: n})
	}
	slices.SortStableFunc(out, func(a, b report.Meeting) int { return -cmp.Compare(a.Objects, b.Objects) })
	if pack == translate.PackMatch || len(out) == 0 || out[0].Objects < 2 {
		return out
	}
	compared := out[:min(first, len(out))]
	drafts, ok := done.PackedByMatch(func(group, resource string) bool {
		rule := vap.ResourceRule{Groups: []string{group}, Resources: []string{resource}}
		return slices.ContainsFunc(compared, func(m report.Meeting) bool { return named{m.Group, m.Resource}.isAmong(rule) })
	})
	var packed [][]vap.ResourceRule
	for _, d := range drafts {
		packed = append(packed, d.Constraints.Rules)
	}
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

// resourcesIn are the resources that webhooks or objects name by their resource rules, without
// subresources and each once: those that people know first, then by name.
func resourcesIn(asking [][]vap.ResourceRule) (list []named) {
	for _, rule := range slices.Concat(asking...) {
		for _, g := range rule.Groups {
			for _, name := range rule.Resources {
				if g != "*" && !strings.ContainsAny(name, "*/") {
					list = append(list, named{g, name})
				}
			}
		}
	}
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

// met is how many webhooks or objects a request meets, by their resource rules, that creates
// one of the resource, or that updates one if those are more.
func (r named) met(asking [][]vap.ResourceRule) int {
	most := 0
	for _, op := range []string{"CREATE", "UPDATE"} {
		n := 0
		for _, rules := range asking {
			if slices.ContainsFunc(rules, func(rule vap.ResourceRule) bool {
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
