package translate

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
)

// lowerImages is what becomes of an ImageValidatingPolicy, which is one rule with the name of the
// policy: nothing native asks a registry.
func lowerImages(p *policy.Policy) api.RuleResult {
	res := api.RuleResult{Policy: p, Target: api.Native, Forms: []api.Form{{Name: p.Name}}}
	v := p.Validating
	what, more := p.VerifiesMore()
	switch {
	case p.Invalid: // its error has been told where it was read
		res.Target = api.Unsupported
	case v.Mode == "JSON":
		res.Refuse(diag.Warnf(p.Pos, diag.OtherPayload, "the policy is for JSON documents (evaluation.mode: JSON); nothing judges it at admission"))
	case v.AdmissionOff:
		res.Refuse(diag.Warnf(p.Pos, diag.BackgroundOnly, "the policy is for background scans only (evaluation.admission.enabled: false); nothing judges it at admission"))
	case more:
		res.Refuse(diag.Warnf(what.Pos, diag.VerifiesImages, "kvap does not verify %s, natively or in the webhook; leave this policy with Kyverno", what.Value))
	case v.MatchConstraints == nil || len(v.MatchConstraints.Rules) == 0:
		res.Refuse(diag.Warnf(p.Pos, diag.NoKinds, "matchConstraints without resourceRules have no request sent to a webhook; add the resources that the policy is for"))
	default:
		res.Refuse(diag.Warnf(p.Pos, diag.OtherRule, "the kind %s has no native form; the webhook will run this policy", p.Kind))
	}
	return res
}
