package vap

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

var (
	object    = cel.Ident("object")
	variables = cel.Ident("variables")
)

// podRule matches the pods that are created or changed.
func podRule() ResourceRule {
	return ResourceRule{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []string{"CREATE", "UPDATE"}}
}

// teamDraft wants pods to have a team, and no host network.
func teamDraft() *Draft {
	labels := object.Field("metadata").Optional("labels").Optional("team").OrValue(cel.String(""))
	message := cel.String("pod ").Plus(object.Field("metadata").Field("name")).Plus(cel.String(" has no team"))
	return &Draft{
		Base: "require-team",
		Members: []Member{
			{Pos: diag.Pos{File: "team.yaml", Line: 9, Col: 5, Path: "spec.rules[0]"}, Policy: "require-team", Rule: "team", Origin: "team"},
			{Pos: diag.Pos{File: "team.yaml", Line: 30, Col: 5, Path: "spec.rules[1]"}, Policy: "require-team", Rule: "host", Origin: "host"},
		},
		FailurePolicy: "Fail",
		Constraints:   Constraints{Rules: []ResourceRule{podRule()}},
		Conditions: []Condition{
			{Name: "not the operator", Expr: cel.Ident("request").Field("userInfo").Field("username").Ne(cel.String("operator"))},
		},
		Variables: []Variable{
			{Name: "team", Expr: labels},
			{Name: "team", Expr: labels},
			{Name: "unused", Expr: cel.Int(1)},
		},
		Validations: []Validation{
			{
				Pos: diag.Pos{File: "team.yaml", Line: 12, Path: "spec.rules[0].validate"}, Member: 0,
				Expr:    variables.Field("team").Ne(cel.String("")),
				Message: "A team is\n  needed.\n", MessageExpression: &message,
			},
			{
				Pos: diag.Pos{File: "team.yaml", Line: 33, Path: "spec.rules[1].validate"}, Member: 1,
				Expr:    cel.Not(object.Field("spec").Optional("hostNetwork").OrValue(cel.False().Value).AsBool()),
				Message: "No host network.", Reason: "Forbidden",
			},
		},
		Bindings: []Binding{{Actions: []string{"Deny"}}},
	}
}
