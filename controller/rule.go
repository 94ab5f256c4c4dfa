package controller

import (
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// rulesByPolicy are the rules of a compilation, of each policy in order.
func rulesByPolicy(result compile.Result) map[*policy.Policy][]*compile.Rule {
	out := map[*policy.Policy][]*compile.Rule{}
	for _, r := range result.Rules {
		out[r.Policy] = append(out[r.Policy], r)
	}
	return out
}

// isLeft tells of a rule that the webhook is to judge.
func isLeft(r *compile.Rule) bool {
	return r.Target == translate.Webhook && !r.Policy.Invalid && (r.Source == nil || !r.Source.Invalid)
}
