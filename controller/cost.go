package controller

import (
	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
)

// perExpression is what the API server lets one expression cost.
const perExpression = 1_000_000

// costPercent is the estimated cost of a rule's dearest validation, as a share of
// what the API server allows, rounded up; 0 for a rule that has none.
func costPercent(r *compile.Rule, result compile.Result) int32 {
	var most int64
	for _, f := range r.Forms {
		for _, p := range f.Places {
			for _, v := range result.Objects[p.Object].Draft.Validations {
				if v.Of(p.Member) {
					most = max(most, cel.Cost(v.Expr.Value, nil))
				}
			}
		}
	}
	return int32(min(most, 100*perExpression)+perExpression/100-1) / (perExpression / 100)
}

// reasonCostly is the reason of Compiled where a rule may cost more than is allowed.
const reasonCostly = "Costly"

// dear is the dearest rule, if it may cost more than the API server allows; else nil.
func dear(rows []v1alpha1.RuleStatus) *v1alpha1.RuleStatus {
	var out *v1alpha1.RuleStatus
	for i := range rows {
		if r := &rows[i]; r.CostPercent > 100 && (out == nil || r.CostPercent > out.CostPercent) {
			out = r
		}
	}
	return out
}
