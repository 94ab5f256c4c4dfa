package translate

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/fields"
	"github.com/kvap/kvap/translate/internal/generate"
	"github.com/kvap/kvap/translate/internal/mutate"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/rule"
)

// lowerPolicy lowers the rules of a policy.
func lowerPolicy(p *policy.Policy, o *api.Options) (units []pack.Unit, rules []api.RuleResult, changes []mutate.Unit) {
	forms := make([][]api.Form, len(p.Rules))
	for _, r := range policy.Expand(p) {
		forms[r.Index] = append(forms[r.Index], api.Form{Name: r.Name, Rule: rule.AsValidation(r)})
	}
	rules = make([]api.RuleResult, len(p.Rules))
	unitsOf := make([][]pack.Unit, len(p.Rules))
	for i := range p.Rules {
		rules[i] = api.RuleResult{Policy: p, Rule: p.Rules[i], Target: api.Native, Forms: forms[i]}
		unitsOf[i] = lower(&rules[i], o)
		rules[i].Doubts = unknownFields(&rules[i], o)
		if slices.ContainsFunc(slices.Concat(rules[i].Doubts, rules[i].Found), func(d diag.Diagnostic) bool {
			return d.Code == diag.UnknownField || d.Code == diag.DeniesEvery // which can be why, and are to be corrected first
		}) {
			never := func(d diag.Diagnostic) bool { return d.Code == diag.NeverOnUpdate }
			rules[i].Found = slices.DeleteFunc(rules[i].Found, never)
			rules[i].Codes = api.CodesOf(rules[i].Found)
		}
	}
	if o.Mutations {
		changes = mutate.LowerRules(p, rules, o)
	}
	if o.Targets {
		mutate.LowerTargets(p, rules, o)
	}
	if o.Generations {
		generate.LowerRules(p, rules, o)
	}
	return slices.Concat(unitsOf...), rules, changes
}

// lower lowers a rule, which is native only if all its forms are.
func lower(r *api.RuleResult, o *api.Options) (units []pack.Unit) {
	if r.Rule.Invalid { // its error has been told where it was read
		r.Target = api.Unsupported
		return nil
	}
	if o.Mutations && r.Changes() || o.Targets && r.ChangesOthers() || o.Generations && r.Generates() { // see LowerRules
		return nil
	}
	why := rule.DependentRules(r.Policy)
	var told diag.List
	for _, form := range r.Forms {
		f := lowerWhole(r.Policy, form.Rule, o)
		if f.Why != nil {
			why = f.Why
			break
		}
		units, r.Found = append(units, f.Units...), append(r.Found, f.Notes...)
		told = append(told, newCodes(told, f.Effects)...)
	}
	if why != nil {
		r.Refuse(*why)
		return nil
	}
	r.Found = append(r.Found, told...).Sort()
	r.Codes = api.CodesOf(r.Found)
	return units
}

// newCodes are those of a form's diagnostics whose codes the forms before it do not have: what is
// so of a rule as written is mostly so of its expansions.
func newCodes(before, of diag.List) (out diag.List) {
	known := api.CodesOf(before)
	for _, d := range of {
		if !slices.Contains(known, d.Code) {
			out = append(out, d)
		}
	}
	return out
}

// lowerWhole lowers a rule whose kind or policy does not rule that out already.
func lowerWhole(p *policy.Policy, r *policy.Rule, o *api.Options) rule.LoweredPart {
	refuse := func(code diag.Code, format string, args ...any) rule.LoweredPart {
		d := diag.Warnf(r.Pos, code, format, args...)
		return rule.LoweredPart{Why: &d}
	}
	switch {
	case r.Invalid:
		return refuse(diag.InvalidRule, "the rule %s could not be read; nothing judges it until it is corrected", r.Name)
	case r.Validate == nil && r.Type() == "":
		return refuse(diag.NoBody, "the rule has no body that does anything")
	case r.Validate == nil:
		return rule.LoweredPart{Why: otherRule(r)}
	case !p.Admission:
		return refuse(diag.BackgroundOnly, "the policy is for background scans only (admission: false); nothing judges it at admission")
	}
	var rewritten diag.List
	conditions, why := celrule.PolicyConditions(p, o, &rewritten)
	if why != nil {
		return rule.LoweredPart{Why: why}
	}
	out := rule.Lower(p, r, conditions, o)
	out.Notes = append(rewritten, out.Notes...)
	return out
}

// otherRule is why a rule that does not validate is not native, and who runs it.
func otherRule(r *policy.Rule) *diag.Diagnostic {
	d := diag.Warnf(r.Pos, diag.OtherRule, "a %s rule has no native form; the webhook will run this rule", r.Type())
	switch {
	case r.VerifyImages != nil:
		if what, more := r.VerifiesMore(); more {
			d = diag.Warnf(what.Pos, diag.VerifiesImages, "kvap does not verify %s, natively or in the webhook; leave this rule with Kyverno", what.Value)
		} else if !slices.ContainsFunc(r.VerifyImages, func(v *policy.ImageVerification) bool { return len(v.Attestors)+len(v.Attestations) > 0 }) {
			d = diag.Warnf(r.Pos, diag.OtherRule, "a verifyImages rule that names nobody who must have signed is native only where all that its entries say is imageReferences: ['*'], mutateDigest: false and required: false; the webhook will run this rule")
		}
	case r.Mutate == nil:
		d = diag.Warnf(r.Pos, diag.OtherRule, "a %s rule has no native form; the controller will run this rule in the background", r.Type())
	case r.Mutate.Existing:
		d = diag.Warnf(r.Pos, diag.OtherRule, "a rule that changes existing objects has no native form; the controller will run this rule in the background")
	default:
		d = diag.Warnf(r.Pos, diag.OtherRule, "a mutate rule may be native for Kubernetes 1.36 and newer, or with --mutations native; here the webhook will run this rule")
	}
	return &d
}

// unknownFields warns of the fields that the rule names and no object has.
func unknownFields(r *api.RuleResult, o *api.Options) diag.List {
	if r.Rule.Invalid {
		return nil
	}
	var forms []fields.Form
	for _, f := range r.Forms {
		targets, ok := matched(r.Policy, f.Rule, o)
		if !ok {
			forms = nil
			break
		}
		forms = append(forms, fields.Form{Rule: f.Rule, Targets: targets})
	}
	return fields.Unknown(r.Rule, forms, o.Schemas, o.Budget)
}

// matched are the targets of a rule; false where they cannot be told.
func matched(p *policy.Policy, r *policy.Rule, o *api.Options) (out []native.Target, ok bool) {
	l := &read.Lowering{Opts: o, Release: read.Release(o.Release), Policy: p, Rule: r, Pos: r.Pos, Gathered: read.NewGathered()}
	why := rule.RefusalOf(l, func() { out = rule.Targets(l) })
	return out, why == nil
}
