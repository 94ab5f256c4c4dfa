package translate

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// lowerMutating is what becomes of a MutatingPolicy, which is one rule with the name of the
// policy: a MutatingAdmissionPolicy where these are asked for, or else the webhook runs it.
func lowerMutating(p *policy.Policy, o *Options) RuleResult {
	res := RuleResult{Policy: p, Target: Native, Forms: mutatingForms(p)}
	m := p.Mutating
	switch {
	case p.Invalid: // its error has been told where it was read
		res.Target = Unsupported
	case m.ChangesOthers() && !m.Existing:
		res.refuse(diag.Warnf(p.Pos, diag.ChangesExisting, "the policy is about objects that are there already (targetMatchConstraints), and changes none: set evaluation.mutateExisting.enabled, or remove targetMatchConstraints"))
	case m.AdmissionOff && !m.Existing:
		res.refuse(diag.Warnf(p.Pos, diag.BackgroundOnly, "the policy is for background scans only (evaluation.admission.enabled: false); nothing runs it at admission"))
	case !o.Mutations || m.Existing: // one policy is carried out by one side
		why := diag.Warnf(p.Pos, diag.OtherRule, "a %s has no native form; the webhook will run this policy", p.Kind)
		if m.Existing {
			why = diag.Warnf(p.Pos, diag.OtherRule, "a %s that changes existing objects has no native form; the controller will run this policy in the background", p.Kind)
		}
		if broken := brokenCEL(m, o); broken != nil {
			why = *broken
		}
		res.refuse(why)
	default:
		drafts, notes, why := mutatingDrafts(p, o)
		if why != nil {
			res.refuse(*why)
			break
		}
		res.Found, res.Mutating = notes.Sort(), drafts
		res.Codes = codesOf(res.Found)
	}
	return res
}

// mutatingForms are the forms of a policy as the webhook has them.
func mutatingForms(p *policy.Policy) []Form {
	var out []Form
	for _, f := range formsOf(p.Mutating.Autogen, constraintsOf(p.Mutating.MatchConstraints)) {
		out = append(out, Form{Name: f.prefixed(p.Name)})
	}
	return out
}

// brokenCEL is the error of the first expression that compiles nowhere, as far as its text
// tells: Kyverno has functions and types of its own.
func brokenCEL(m *policy.Mutating, o *Options) *diag.Diagnostic {
	expressions := slices.Concat(m.MatchConditions, m.AuditAnnotations, m.TargetConditions)
	if m.TargetExpression != "" {
		expressions = append(expressions, policy.CEL{Pos: m.Targets.Pos, Expression: m.TargetExpression})
	}
	for _, one := range m.Mutations {
		expressions = append(expressions, policy.CEL{Pos: one.Pos, Expression: one.Expression})
	}
	var before []vap.Variable
	for _, v := range m.Variables {
		expr, why := readCEL(v.Expression, v.Pos, o.Release)
		if why == nil {
			why = undeclared(expr, before, v.Pos)
		}
		if why != nil && why.Code == diag.BadExpression {
			return why
		}
		before = append(before, vap.Variable{Name: v.Name})
	}
	for _, one := range expressions {
		if _, why := readCEL(one.Expression, one.Pos, o.Release); why != nil && why.Code == diag.BadExpression {
			return why
		}
	}
	return nil
}
