package translate

import (
	"slices"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/fields"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/vap"
)

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
	// Mutations has mutate rules and MutatingPolicies become MutatingAdmissionPolicies, where
	// they can. Otherwise all of them are the webhook's.
	Mutations bool
	// Repeatable leaves to the webhook what is not proven to change nothing more when it runs
	// twice, as it does where policies go from a webhook to the API server, and what is about
	// kinds that API servers come to know while they run.
	Repeatable bool
	// Merging says how apply configurations are merged; nil has none made.
	Merging Merging
	// Checker checks what the source says in CEL, which only Lower asks.
	Checker Checker
	// Each does n things that do not depend on each other, and returns when all are
	// done; nil does one after the other.
	Each func(n int, do func(i int))
	// Budget is what lowering a policy may cost; nil has no bound. Who lowers with one
	// recovers its panics.
	Budget *budget.Budget
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

// A Target is where a rule is judged.
type Target string

// The targets.
const (
	Native      Target = "native"      // by the API server
	Webhook     Target = "webhook"     // by the embedded webhook
	Unsupported Target = "unsupported" // nowhere
)

// A Result is what became of policies: drafts, and for every rule as written
// where it is judged and why.
type Result struct {
	Drafts      []*vap.Draft
	Mutating    []*mutating.Draft
	Rules       []RuleResult
	Diagnostics diag.List
}

// A RuleResult is what became of one rule as written.
type RuleResult struct {
	Policy *policy.Policy
	Rule   *policy.Rule // nil for a policy in CEL, which is one rule
	Target Target
	Codes  []diag.Code // why it is not native, or what the user must know
	// Found is what there is to say of the rule.
	Found diag.List
	// Doubts are about the rule as it is written, whatever becomes of it.
	Doubts diag.List
	// Drafts enforce the rule.
	Drafts []*vap.Draft
	// Mutating are those that make its changes, of a rule that mutates.
	Mutating []*mutating.Draft
	// Forms are the rule as Kyverno reports it: as written, and as expanded for the
	// controllers of pods.
	Forms []Form
}

// A Form is a rule by a name that Kyverno reports.
type Form struct {
	Name string
	Rule *policy.Rule // as expanded; nil for a policy in CEL
	// Places are where the drafts have it.
	Places []Place
}

// A Place is a member of a draft.
type Place struct {
	Draft  *vap.Draft
	Member int // index of Draft.Members
}

func (o Options) withDefaults() Options {
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

// packing is what the options say of it.
func (o *Options) packing() pack.Options {
	return pack.Options{Apart: o.Pack == PackRule, ByKind: o.Pack == PackMatch, Unguarded: o.Guard == GuardNever, Each: o.Each}
}

// lowerPolicy lowers the rules of a policy.
func lowerPolicy(p *policy.Policy, o *Options) (units []pack.Unit, rules []RuleResult) {
	forms := make([][]Form, len(p.Rules))
	for _, r := range policy.Expand(p) {
		forms[r.Index] = append(forms[r.Index], Form{Name: r.Name, Rule: r})
	}
	rules = make([]RuleResult, len(p.Rules))
	unitsOf := make([][]pack.Unit, len(p.Rules))
	o.Each(len(p.Rules), func(i int) {
		rules[i] = RuleResult{Policy: p, Rule: p.Rules[i], Target: Native, Forms: forms[i]}
		unitsOf[i] = rules[i].lower(o)
		rules[i].Doubts = rules[i].unknownFields(o)
	})
	if o.Mutations {
		lowerMutateRules(p, rules, o)
	}
	return slices.Concat(unitsOf...), rules
}

// lower lowers a rule, which is native only if all its forms are.
func (r *RuleResult) lower(o *Options) (units []pack.Unit) {
	if r.Rule.Invalid { // its error has been told where it was read
		r.Target = Unsupported
		return nil
	}
	if o.Mutations && r.changes() { // see lowerMutateRules
		return nil
	}
	of := make([]loweredPart, len(r.Forms))
	last := untilRefused(o, len(of), func(i int) (refused bool) {
		of[i] = lowerWhole(r.Policy, r.Forms[i].Rule, o)
		return of[i].why != nil
	})
	for _, f := range of[:last] {
		units, r.Found = append(units, f.units...), append(r.Found, f.notes...)
	}
	why := dependentRules(r.Policy)
	if last < len(of) {
		why = of[last].why
	}
	if why != nil {
		r.refuse(*why)
		return nil
	}
	r.Found = r.Found.Sort()
	r.Codes = codesOf(r.Found)
	return units
}

// A loweredPart is what became of a form of a rule, or of a part of one: units and what
// is to be told, or why there is no native form.
type loweredPart struct {
	units []pack.Unit
	notes diag.List
	why   *diag.Diagnostic
}

// untilRefused does n things, each of which may be refused, as far as none before it is.
// It returns the first that is, or n.
func untilRefused(o *Options, n int, do func(i int) (refused bool)) int {
	var first atomic.Int64
	first.Store(int64(n))
	o.Each(n, func(i int) {
		if first.Load() < int64(i) || !do(i) {
			return
		}
		for now := first.Load(); int64(i) < now && !first.CompareAndSwap(now, int64(i)); {
			now = first.Load()
		}
	})
	return int(first.Load())
}

func codesOf(ds diag.List) []diag.Code {
	var out []diag.Code
	seen := map[diag.Code]bool{}
	for _, d := range ds {
		if !seen[d.Code] {
			seen[d.Code] = true
			out = append(out, d.Code)
		}
	}
	return out
}

// lowerWhole lowers a rule whose kind or policy does not rule that out already.
func lowerWhole(p *policy.Policy, r *policy.Rule, o *Options) loweredPart {
	refuse := func(code diag.Code, format string, args ...any) loweredPart {
		d := diag.Warnf(r.Pos, code, format, args...)
		return loweredPart{why: &d}
	}
	switch {
	case r.Invalid:
		return refuse(diag.InvalidRule, "the rule %s could not be read; nothing judges it until it is corrected", r.Name)
	case r.Validate == nil && r.Type() == "":
		return refuse(diag.NoBody, "the rule has no body that does anything")
	case r.Validate == nil:
		return loweredPart{why: otherRule(r)}
	case !p.Admission:
		return refuse(diag.BackgroundOnly, "the policy is for background scans only (admission: false); nothing judges it at admission")
	}
	var rewritten diag.List
	conditions, why := policyConditions(p, o, &rewritten)
	if why != nil {
		return loweredPart{why: why}
	}
	out := lowerRule(p, r, conditions, o)
	out.notes = append(rewritten, out.notes...)
	return out
}

// otherRule is why a rule that does not validate is not native, and who runs it.
func otherRule(r *policy.Rule) *diag.Diagnostic {
	d := diag.Warnf(r.Pos, diag.OtherRule, "a %s rule has no native form; the webhook will run this rule", r.Type())
	switch {
	case r.VerifyImages != nil:
		if what, more := r.VerifiesMore(); more {
			d = diag.Warnf(what.Pos, diag.VerifiesImages, "kvap does not verify %s, natively or in the webhook; leave this rule with Kyverno", what.Value)
		}
	case r.Mutate == nil:
		d = diag.Warnf(r.Pos, diag.OtherRule, "a %s rule has no native form; the controller will run this rule in the background", r.Type())
	case r.Mutate.Existing:
		d = diag.Warnf(r.Pos, diag.OtherRule, "a rule that changes existing objects has no native form; the controller will run this rule in the background")
	}
	return &d
}

// dependentRules is why the rules of a policy cannot be judged apart: with applyRules:
// One, a rule counts only when those before it did not apply.
func dependentRules(p *policy.Policy) *diag.Diagnostic {
	if !p.ApplyOne || len(p.Rules) < 2 {
		return nil
	}
	d := diag.Warnf(p.Pos, diag.ApplyOne, "applyRules: One makes a rule depend on the verdict of those before it; the webhook will judge this policy")
	return &d
}

func unsupportedCode(c diag.Code) bool {
	return c == diag.BackgroundOnly || c == diag.NoBody || c == diag.InvalidRule || c == diag.OtherPayload ||
		c == diag.ChangesExisting
}

// unknownFields warns of the fields that the rule names and no object has.
func (r *RuleResult) unknownFields(o *Options) diag.List {
	if r.Rule.Invalid {
		return nil
	}
	var forms []fields.Form
	for _, f := range r.Forms {
		targets, ok := matched(r.Policy, f.Rule, o)
		if !ok {
			return nil
		}
		forms = append(forms, fields.Form{Rule: f.Rule, Targets: targets})
	}
	return fields.Unknown(r.Rule, forms, o.Schemas, o.Budget)
}

// matched are the targets of a rule; false where they cannot be told.
func matched(p *policy.Policy, r *policy.Rule, o *Options) (out []native.Target, ok bool) {
	l := &lowering{opts: o, release: release(o.Release), policy: p, rule: r, pos: r.Pos, gathered: newGathered(nil), environment: environment{needs: &needs{}}}
	why := l.refusalOf(func() { out = l.ruleTargets() })
	return out, why == nil
}
