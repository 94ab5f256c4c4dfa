package mutate

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/vap"
)

// LowerPolicy is what becomes of a MutatingPolicy, which is one rule with the name of the
// policy: a MutatingAdmissionPolicy where these are asked for, or else the webhook runs it.
func LowerPolicy(p *policy.Policy, o *api.Options) api.RuleResult {
	res := api.RuleResult{Policy: p, Target: api.Native}
	m := p.Mutating
	for _, f := range celrule.FormsOf(m.Autogen, match.ConstraintsOf(m.MatchConstraints)) { // as the webhook has them
		res.Forms = append(res.Forms, api.Form{Name: f.Prefixed(p.Name)})
	}
	switch {
	case p.Invalid: // its error has been told where it was read
		res.Target = api.Unsupported
	case m.ChangesOthers() && !m.Existing:
		res.Refuse(diag.Warnf(p.Pos, diag.ChangesExisting, "the policy is about objects that are there already (targetMatchConstraints), and changes none: set evaluation.mutateExisting.enabled, or remove targetMatchConstraints"))
	case m.AdmissionOff && !m.Existing:
		res.Refuse(diag.Warnf(p.Pos, diag.BackgroundOnly, "the policy is for background scans only (evaluation.admission.enabled: false); nothing runs it at admission"))
	case !o.Mutations || m.Existing: // one policy is carried out by one side
		why := diag.Warnf(p.Pos, diag.OtherRule, "a %s has no native form; the webhook will run this policy", p.Kind)
		if m.Existing {
			why = diag.Warnf(p.Pos, diag.OtherRule, "a %s that changes existing objects has no native form; the controller will run this policy in the background", p.Kind)
		}
		if broken := brokenCEL(m, o); broken != nil {
			why = *broken
		}
		res.Refuse(why)
	default:
		drafts, notes, why := mutatingDrafts(p, o)
		if why != nil {
			res.Refuse(*why)
			break
		}
		res.Found, res.Mutating = notes.Sort(), drafts
		res.Codes = api.CodesOf(res.Found)
	}
	return res
}

// brokenCEL is the error of the first expression that compiles nowhere, as far as its text
// tells: Kyverno has functions and types of its own.
func brokenCEL(m *policy.Mutating, o *api.Options) *diag.Diagnostic {
	expressions := slices.Concat(m.MatchConditions, m.AuditAnnotations, m.TargetConditions)
	if m.TargetExpression != "" {
		expressions = append(expressions, policy.CEL{Pos: m.Targets.Pos, Expression: m.TargetExpression})
	}
	for _, one := range m.Mutations {
		expressions = append(expressions, policy.CEL{Pos: one.Pos, Expression: one.Expression})
	}
	var before []vap.Variable
	for _, v := range m.Variables {
		expr, why := celrule.ReadCEL(v.Expression, v.Pos, o.Release)
		if why == nil {
			why = celrule.Undeclared(expr, before, v.Pos)
		}
		if why != nil && why.Code == diag.BadExpression {
			return why
		}
		before = append(before, vap.Variable{Name: v.Name})
	}
	for _, one := range expressions {
		if _, why := celrule.ReadCEL(one.Expression, one.Pos, o.Release); why != nil && why.Code == diag.BadExpression {
			return why
		}
	}
	return nil
}
