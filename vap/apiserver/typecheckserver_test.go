package apiserver

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/schema"
)

// The type checker says of a policy with all kinds of mistakes what the API server's
// own says, on each kind.
func TestTypeCheckerIsTheServers(t *testing.T) {
	set, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	own, upstream := NewTypeChecker(set.Resolver(), set.RESTMapper()), &validating.TypeChecker{SchemaResolver: set.Resolver(), RestMapper: set.RESTMapper()}
	for _, params := range []*admissionregistrationv1.ParamKind{nil, {APIVersion: "v1", Kind: "ConfigMap"}, {APIVersion: "acme.io/v1", Kind: "Nothing"}, {APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"}} {
		p := mistaken(params)
		want := serverSays(upstream, p)
		if len(want) < 8 {
			t.Fatalf("the mistakes are not seen: %v", want)
		}
		if d := textdiff.Values(want, own.Check(p)); d != "" {
			t.Errorf("params %v (-server +own):\n%s", params, d)
		}
	}
}

// mistaken is a policy on several kinds, wrong on all of them or on some.
func mistaken(params *admissionregistrationv1.ParamKind) *admissionregistrationv1.ValidatingAdmissionPolicy {
	on := func(group, version string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources},
		}}
	}
	return &admissionregistrationv1.ValidatingAdmissionPolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		ParamKind: params,
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			on("", "v1", "pods", "services", "pods/status", "configmaps"), on("apps", "v1", "deployments"),
			on("autoscaling", "v1", "horizontalpodautoscalers"), on("acme.io", "v1", "widgets"), on("*", "v1", "nodes"),
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "no-variables", Expression: "variables.names.size() > 0"}, {Name: "good", Expression: "has(object.metadata)"},
			{Name: "some", Expression: "object.spec.replicas > 1"},
		},
		Variables: []admissionregistrationv1.Variable{
			{Name: "early", Expression: "variables.names"}, {Name: "names", Expression: "object.spec.containers.map(c, c.name)"},
			{Name: "labels", Expression: "object.metadata.labels"}, {Name: "after", Expression: "variables.labels.size() + variables.early"},
			{Name: "count", Expression: "variables.names.size()"}, {Name: "limit", Expression: "quantity('1Gi')"},
		},
		Validations: []admissionregistrationv1.Validation{
			{Expression: "variables.count > 1", MessageExpression: "'there are ' + variables.count"}, {Expression: "variables.limit == 'x'"},
			{Expression: "object.spec.replicas == oldObject.spec.replicas && request.nothing == ''"}, {Expression: "object.spec +"},
			{Expression: "params.data.all(k, k == 1) && params.spec.minReplicas == 'x'"}, {Expression: "object.metadata.namespace == namespaceObject.metadata.name", MessageExpression: "variables.none"},
			{Expression: "authorizer.requestResource.check('get').allowed()"},
		},
		AuditAnnotations: []admissionregistrationv1.AuditAnnotation{{Key: "a", ValueExpression: "variables.count"}, {Key: "b", ValueExpression: "variables.names[0] + 1"}},
	}}
}

// serverSays is what the API server's checker says, of the expressions that it does not
// look at too: each with the variables before it.
func serverSays(checker *validating.TypeChecker, p *admissionregistrationv1.ValidatingAdmissionPolicy) []TypeWarning {
	var out []TypeWarning
	for _, w := range checker.Check(p) {
		out = append(out, TypeWarning{Field: w.FieldRef, Warning: withoutClock(w.Warning)})
	}
	hidden := func(variables int, text string, at *field.Path) {
		prefix := p.DeepCopy()
		prefix.Spec.Variables = p.Spec.Variables[:variables]
		if results := checker.CheckExpression(checker.CreateContext(prefix), text); len(results) > 0 {
			out = append(out, TypeWarning{Field: at.String(), Warning: withoutClock(results.String()), Hidden: true})
		}
	}
	spec := field.NewPath("spec")
	for i, v := range p.Spec.Variables {
		hidden(i, v.Expression, spec.Child("variables").Index(i).Child("expression"))
	}
	for i, a := range p.Spec.AuditAnnotations {
		hidden(len(p.Spec.Variables), a.ValueExpression, spec.Child("auditAnnotations").Index(i).Child("valueExpression"))
	}
	return out
}
