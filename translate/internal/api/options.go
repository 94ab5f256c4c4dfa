package api

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/vap"
)

// DeadSelector tells of a selector that selects, by their label with the name, only
// namespaces that bindings leave out.
func (o *Options) DeadSelector(at diag.Pos, s vap.Selector) diag.List {
	only, ok := s.Namespaces()
	if !ok || slices.ContainsFunc(only, func(ns string) bool { return !slices.Contains(o.ExcludedNamespaces, ns) }) {
		return nil
	}
	return diag.List{diag.Warnf(at, diag.ExcludedNamespace, "nothing judges what this selects: its namespaceSelector is for %s only, "+
		"which --exclude-namespaces leaves out; name them in namespaces, or set --exclude-namespaces none", strings.Join(only, ", "))}
}

// Kind is the kind of object that carries the data of a ConfigMap.
func (p Params) Kind() (apiVersion, kind string) {
	if p == ParamsKvap {
		return "kvap.dev/v1alpha1", "Params"
	}
	return "v1", "ConfigMap"
}

// HasLate is isLate of the resources of a policy in CEL.
func (o *Options) HasLate(rules []vap.ResourceRule) bool {
	return o.SomeResource(rules, func(of schema.Resource) bool { return o.Schemas.Custom(of.GVK) })
}

// SomeResource tells that resource rules name one that is so, or that is not known.
func (o *Options) SomeResource(rules []vap.ResourceRule, is func(schema.Resource) bool) bool {
	return slices.ContainsFunc(rules, func(r vap.ResourceRule) bool {
		return slices.ContainsFunc(r.Groups, func(group string) bool {
			return slices.ContainsFunc(r.Versions, func(version string) bool {
				return slices.ContainsFunc(r.Resources, func(name string) bool {
					of, ok := o.Schemas.ByResource(group, version, name)
					return !ok || of.Guessed || is(of)
				})
			})
		})
	})
}

// Options are the choices of a translation.
type Options struct {
	Release    cel.Release
	Schemas    *schema.Set
	Pack       Pack
	Params     Params
	Existing   Existing
	Guard      Guard
	Exceptions []*policy.Exception
	// ExcludedNamespaces are those that bindings leave out, but where a rule names them.
	ExcludedNamespaces []string
	// OwnNamespace is kvap's own, which bindings leave out whatever a rule names.
	OwnNamespace string
	// AnyGroup has rules that name a kind without its group match it in every group and
	// version. Otherwise they match those that projects publish, where they do.
	AnyGroup bool
	// Mutations has mutate rules and MutatingPolicies become MutatingAdmissionPolicies, where
	// they can. Otherwise all of them are the webhook's.
	Mutations bool
	// Generations has generate rules become policies that generate, of Kyverno's kinds in CEL: no
	// API server has them. Otherwise all of them are the controller's.
	Generations bool
	// Targets has mutate rules with targets become policies that change existing objects, of the same
	// kinds. Otherwise all of them are the controller's.
	Targets bool
	// Library has rules read what Kyverno's CEL library asks for: other objects, registries, the
	// time. No API server takes such expressions; they are for package celpolicy.
	Library bool
	// Repeatable leaves to the webhook what is not proven to change nothing more when it runs
	// twice, as it does where policies go from a webhook to the API server, and what is about
	// kinds that API servers come to know while they run.
	Repeatable bool
	// Merging says how apply configurations are merged; nil has none made.
	Merging Merging
	// PackMutations has the mutate rules of all policies share objects. A Lowered of those that
	// mutate keeps its trees then.
	PackMutations bool
	// Checker checks what the source says in CEL, and what policies that mutate share; nil takes
	// the latter for good.
	Checker Checker
	// Each packs n policies that share nothing, and returns when all are done; nil packs one
	// after the other.
	Each func(n int, do func(i int))
	// Trace is told each step of lowering rules, in order; nil where nobody follows it.
	Trace func(Step)
	// Budget is what lowering a policy may cost; nil has no bound. Who lowers with one
	// recovers its panics.
	Budget *budget.Budget
}

// A Step is what the walk over a rule has decided at a place.
type Step struct {
	Pos  diag.Pos
	Rule string
	// Target and Operations are what the walk is for.
	Target     string
	Operations []string
	What, Is   string
}

// A Checker says what the API server of the release would refuse of a policy object, to
// several who ask at once where Options.Each does things at once.
type Checker interface {
	Refusals(p *admissionregistrationv1.ValidatingAdmissionPolicy) []vap.Refusal
	// MutatingRefusals are those of a policy object that mutates.
	MutatingRefusals(p *admissionregistrationv1.MutatingAdmissionPolicy) []vap.Refusal
}

// Merging knows how the API server merges an apply configuration into what stands at a path
// of an object of a kind, for several who ask at once.
type Merging interface {
	Of(group, version, kind string, path []string) mutating.Merge
	// Keyed are the lists of a kind whose elements are told apart by keys that have no default.
	Keyed(group, version, kind string) []mutating.KeyedList
}

// A Pack says which rules share a ValidatingAdmissionPolicy.
type Pack string

// The packs.
const (
	PackRule   Pack = "rule"   // none
	PackPolicy Pack = "policy" // those of one policy; the default
	PackMatch  Pack = "match"  // those of all policies
)

// Params says what carries the parameters of rules that read a ConfigMap.
type Params string

// The kinds of params.
const (
	ParamsConfigMap Params = "configmap" // the ConfigMap itself; the default
	ParamsKvap      Params = "kvap"      // an object of kvap's own kind
)

// Existing says what becomes of an update of an object that violated the rule
// before.
type Existing string

// The choices for existing violations.
const (
	AllowExisting Existing = "allow" // as Kyverno does; the default
	DenyExisting  Existing = "deny"
)

// A Guard says whether policy objects have a guard.
type Guard string

// The choices for guards.
const (
	GuardAuto  Guard = "auto"  // where there can be one; the default
	GuardNever Guard = "never" // none
)

// WithDefaults fills in what the options leave open.
func (o Options) WithDefaults() Options {
	if o.Pack == "" {
		o.Pack = PackPolicy
	}
	if o.Params == "" {
		o.Params = ParamsConfigMap
	}
	if o.Existing == "" {
		o.Existing = AllowExisting
	}
	if o.Guard == "" {
		o.Guard = GuardAuto
	}
	if o.Each == nil {
		o.Each = oneByOne
	}
	return o
}

func oneByOne(n int, do func(i int)) {
	for i := range n {
		do(i)
	}
}

// Packing is what the options say of it.
func (o *Options) Packing() pack.Options {
	return pack.Options{Apart: o.Pack == PackRule, ByKind: o.Pack == PackMatch, Unguarded: o.Guard == GuardNever}
}
