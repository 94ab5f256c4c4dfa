package translate

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
)

// lowerGenerating is what becomes of a GeneratingPolicy, which is one rule with the name of
// the policy: nothing native makes other objects.
func lowerGenerating(p *policy.Policy) api.RuleResult {
	res := api.RuleResult{Policy: p, Target: api.Native, Forms: []api.Form{{Name: p.Name}}}
	switch {
	case p.Invalid: // its error has been told where it was read
		res.Target = api.Unsupported
	case p.Generating.AdmissionOff && !p.Generating.Existing:
		res.Refuse(diag.Warnf(p.Pos, diag.BackgroundOnly, "nothing triggers the policy: no request does (evaluation.admission.enabled: false), and no object that is there (evaluation.generateExisting)"))
	default:
		res.Refuse(diag.Warnf(p.Pos, diag.OtherRule, "a %s has no native form; the controller will run this policy in the background", p.Kind))
	}
	return res
}
