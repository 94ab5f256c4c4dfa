package apiserver_test

import (
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"

	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap/apiserver"
)

var _ resolver.SchemaResolver = schema.Resolver{}

// typeErrors is what the API server's type checker says of an expression on a resource.
func typeErrors(checker *apiserver.TypeChecker, group, version, resource, expression string) string {
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			}},
		}}},
		Validations: []admissionregistrationv1.Validation{{Expression: expression}},
	}}
	var warnings []string
	for _, w := range checker.Shown(p) {
		warnings = append(warnings, w.Warning)
	}
	return strings.Join(warnings, "\n")
}

// The API server's type checker finds typing errors, and gives none of the false
// alarms that the cluster's own schemas give.
func TestTypeCheckWithSchemas(t *testing.T) {
	builtin, err := schema.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../schema/testdata/backup.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := builtin.WithCRDFile("backup.yaml", text)
	checker := apiserver.NewTypeChecker(s.Resolver(), s.RESTMapper())
	for _, c := range []struct {
		group, version, resource string
		expression               string
		want                     string // in the warning; none where empty
	}{
		{"", "v1", "pods", "object.spec.containers.all(c, c.image != '')", ""},
		{"", "v1", "pods", "object.spec.contaners.all(c, c.image != '')", "undefined field 'contaners'"},
		{"", "v1", "pods", "object.spec.hostNetwork == 'true'", "no matching overload"},
		{"", "v1", "pods", "object.spec.containers.all(c, quantity(c.resources.limits['memory']).isGreaterThan(quantity('1Gi')))", ""},
		{"", "v1", "pods", "object.metadata.creationTimestamp == 'x'", ""},
		{"", "v1", "pods", "object.metadata.labels.foo == 'bar'", ""},
		{"", "v1", "pods", "object.metadata.managedFields.all(m, m.fieldsV1.f == 1)", ""},
		{"", "v1", "secrets", "object.data.all(k, object.data[k] != '')", ""},
		{"", "v1", "services", "object.spec.ports.all(p, p.targetPort == 80 || p.targetPort == 'http')", ""},
		{"apps", "v1", "deployments", "object.spec.template.spec.containers.size() > 0", ""},
		{"apps", "v1", "deployments", "object.spec.containers.size() > 0", "undefined field 'containers'"},
		{"batch", "v1", "cronjobs", "object.spec.jobTemplate.spec.template.spec.nope == 1", "undefined field 'nope'"},
		{"autoscaling", "v2", "horizontalpodautoscalers", "object.spec.minReplicas == 1", ""},
		{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "object.spec.versions.all(v, v.schema.openAPIV3Schema.not.not.type == 'x')", ""},
		{"shop.example.com", "v1", "backups", "object.spec.schedule == 'x' && object.spec.ratio == 1 && object.spec.note == null", ""},
		{"shop.example.com", "v1", "backups", "object.spec.values.a.b == 1 && object.spec.raw[0] == 'x'", ""},
		{"shop.example.com", "v1", "backups", "object.spec.shedule == 'x'", "undefined field 'shedule'"},
		{"shop.example.com", "v1", "realms", "object.spec.owner == 1", "no matching overload"},
		{"shop.example.com", "v1alpha1", "backups", "object.whatever == 1", ""},
	} {
		got := typeErrors(checker, c.group, c.version, c.resource, c.expression)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.resource, c.expression, got, c.want)
		}
	}
}
