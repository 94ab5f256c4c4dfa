package controller

import (
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
				if v.Member == p.Member {
					most = max(most, cel.Cost(v.Expr.Value, nil))
				}
			}
		}
	}
	return int32(min(most, 100*perExpression)+perExpression/100-1) / (perExpression / 100)
}
