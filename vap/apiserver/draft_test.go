package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// expr is the expression that a text says.
func expr(text string) cel.Value {
	v, err := cel.Parse(text)
	if err != nil {
		panic(err)
	}
	return v
}

// podRule matches the pods that are created or changed.
func podRule() vap.ResourceRule {
	return vap.ResourceRule{Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{"pods"}, Operations: []string{"CREATE", "UPDATE"}}
}

// teamDraft wants pods to have a team, and no host network.
func teamDraft() *vap.Draft {
	message := expr("'pod ' + object.metadata.name + ' has no team'")
	return &vap.Draft{
		Base:          "require-team",
		Members:       []vap.Member{{Policy: "require-team", Rule: "team", Origin: "team"}, {Policy: "require-team", Rule: "host", Origin: "host"}},
		FailurePolicy: "Fail",
		Constraints:   vap.Constraints{Rules: []vap.ResourceRule{podRule()}},
		Conditions:    []vap.Condition{{Name: "not the operator", Expr: expr("request.userInfo.username != 'operator'").AsBool()}},
		Variables:     []vap.Variable{{Name: "team", Expr: expr("object.metadata.?labels.?team.orValue('')")}},
		Validations: []vap.Validation{
			{Member: 0, Expr: expr("variables.team != ''").AsBool(), Message: "A team is needed.", MessageExpression: &message},
			{Member: 1, Expr: expr("!object.spec.?hostNetwork.orValue(false)").AsBool(), Message: "No host network.", Reason: "Forbidden"},
		},
		Bindings: []vap.Binding{{Actions: []string{"Deny"}}},
	}
}

// checks is a draft whose one validation is the CEL text.
func checks(text string) *vap.Draft {
	d := teamDraft()
	d.Conditions, d.Variables = nil, nil
	d.Members = d.Members[:1]
	d.Validations = []vap.Validation{{Expr: expr(text).AsBool(), Message: "no"}}
	return d
}

// emit makes objects of a draft, which the API server accepts.
func emit(t *testing.T, d *vap.Draft, opts vap.EmitOptions) vap.Objects {
	t.Helper()
	o, found := vap.Emit(d, opts)
	if len(found) > 0 {
		t.Fatalf("Emit: %v", found)
	}
	if errs := Validate(o.Policy, cel.Latest); len(errs) > 0 {
		t.Errorf("the API server would refuse the policy: %v", errs.ToAggregate())
	}
	for _, b := range o.Bindings {
		if errs := ValidateBinding(b); len(errs) > 0 {
			t.Errorf("the API server would refuse the binding: %v", errs.ToAggregate())
		}
	}
	return o
}

// What package vap makes of a draft is accepted, with all that a draft may have.
func TestEmittedIsAccepted(t *testing.T) {
	validation := func(check string) func(*vap.Draft) {
		return func(d *vap.Draft) { d.Validations[0].Expr = expr(check).AsBool() }
	}
	alternatives := make([]string, 20)
	for i := range alternatives {
		alternatives[i] = fmt.Sprintf("object.metadata.name == 'name%d'", i)
	}
	for _, tt := range []struct {
		name   string
		change func(*vap.Draft)
		opts   vap.EmitOptions
	}{
		{"params and selectors", withParams, vap.EmitOptions{}},
		{"static", func(*vap.Draft) {}, vap.EmitOptions{Static: true, ExcludeNamespaces: []string{}}},
		{"as many conditions as there may be", conditions(64), vap.EmitOptions{}},
		{"more conditions than there may be", conditions(100), vap.EmitOptions{}},
		{"a condition that always holds", func(d *vap.Draft) { d.Conditions[0].Expr = cel.True() }, vap.EmitOptions{}},
		{"a long check, which a message asks for again", validation(strings.Join(alternatives, " || ")), vap.EmitOptions{}},
		{"a check that always holds", validation("true"), vap.EmitOptions{}},
		{"a check that asks the authorizer", validation("authorizer.group('').resource('pods').check('get').allowed()"), vap.EmitOptions{}},
		{"one namespace is excluded", func(*vap.Draft) {}, vap.EmitOptions{ExcludeNamespaces: []string{"a"}}},
		{"one namespace is selected", selecting(vap.Selector{Labels: []vap.Label{{Key: "kubernetes.io/metadata.name", Value: "app"}}}), vap.EmitOptions{}},
		{"an excluded namespace is selected", selecting(vap.Selector{Labels: []vap.Label{{Key: "kubernetes.io/metadata.name", Value: "kube-system"}}}), vap.EmitOptions{}},
		{"several namespaces are selected", selecting(vap.Selector{Expressions: []vap.Requirement{{Key: "kubernetes.io/metadata.name", Operator: "In", Values: []string{"app", "kube-public"}}}}), vap.EmitOptions{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := teamDraft()
			tt.change(d)
			emit(t, d, tt.opts)
		})
	}
}

func withParams(d *vap.Draft) {
	d.ParamKind = &vap.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	d.Bindings = []vap.Binding{
		{
			Suffix: "deny", Actions: []string{"Deny"},
			NamespaceSelector: vap.Selector{Labels: []vap.Label{{Key: "tier", Value: "prod"}}},
			ObjectSelector:    vap.Selector{Expressions: []vap.Requirement{{Key: "skip", Operator: "DoesNotExist"}}},
			Param:             &vap.ParamRef{Name: "teams", Namespace: "policy"},
		},
		{
			Suffix: "audit", Actions: []string{"Warn", "Audit"},
			Rules: []vap.ResourceRule{podRule()},
			Param: &vap.ParamRef{Selector: &vap.Selector{Labels: []vap.Label{{Key: "teams", Value: "true"}}}, NotFound: "Allow"},
		},
	}
}

func conditions(n int) func(*vap.Draft) {
	return func(d *vap.Draft) {
		for len(d.Conditions) < n {
			d.Conditions = append(d.Conditions, vap.Condition{Name: "c", Expr: expr(fmt.Sprintf("request.name != '%d'", len(d.Conditions))).AsBool()})
		}
	}
}

func selecting(s vap.Selector) func(*vap.Draft) {
	return func(d *vap.Draft) { d.Bindings[0].NamespaceSelector = s }
}
