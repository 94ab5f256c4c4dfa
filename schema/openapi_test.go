package schema_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"

	"github.com/kvap/kvap/schema"
)

var _ resolver.SchemaResolver = schema.Resolver{}

// check has the API server's own type checker judge an expression on a resource.
func check(s *schema.Set, group, version, resource, expression string) []string {
	checker := &validating.TypeChecker{SchemaResolver: s.Resolver(), RestMapper: s.RESTMapper()}
	policy := &v1.ValidatingAdmissionPolicy{Spec: v1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &v1.MatchResources{ResourceRules: []v1.NamedRuleWithOperations{{
			RuleWithOperations: v1.RuleWithOperations{Rule: v1.Rule{
				APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
			}},
		}}},
		Validations: []v1.Validation{{Expression: expression}},
	}}
	var warnings []string
	for _, w := range checker.Check(policy) {
		warnings = append(warnings, w.Warning)
	}
	return warnings
}

// TestTypeChecker: the checker finds typing errors, and gives none of the false
// alarms that the cluster's own schemas give.
func TestTypeChecker(t *testing.T) {
	s := withBackup(t)
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
		got := strings.Join(check(s, c.group, c.version, c.resource, c.expression), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.resource, c.expression, got, c.want)
		}
	}
}

func TestResolverKnowsAll(t *testing.T) {
	s := builtin(t, "1.36")
	for _, r := range s.Resources("*", "*", "*") {
		if _, err := s.Resolver().ResolveSchema(apischema.GroupVersionKind(r.GVK)); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Resolver().ResolveSchema(apischema.GroupVersionKind{Kind: "Nothing"}); !errors.Is(err, schema.ErrNotFound) {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestRESTMapper(t *testing.T) {
	s := withBackup(t)
	m := s.RESTMapper()
	for _, r := range s.Resources("*", "*", "*") {
		kinds, err := m.KindsFor(apischema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural})
		if err != nil || !slices.Contains(kinds, apischema.GroupVersionKind(r.GVK)) {
			t.Errorf("%s: %v, %v", r.GVK, kinds, err)
		}
		mapping, err := m.RESTMapping(apischema.GroupKind{Group: r.Group, Kind: r.Kind}, r.Version)
		if err != nil || mapping.Resource.Resource != r.Plural {
			t.Errorf("%s: %v, %v", r.GVK, mapping, err)
		}
	}
	best, err := m.KindFor(apischema.GroupVersionResource{Group: "autoscaling", Resource: "horizontalpodautoscalers"})
	if err != nil || best.Version != "v2" {
		t.Errorf("the preferred HorizontalPodAutoscaler is %v, %v", best, err)
	}
}
