package apiserver

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/vap"
)

// Each change makes a valid policy one that an API server refuses, at the field named.
func TestValidate(t *testing.T) {
	rule := func(p *admissionregistrationv1.ValidatingAdmissionPolicy) *admissionregistrationv1.NamedRuleWithOperations {
		return &p.Spec.MatchConstraints.ResourceRules[0]
	}
	for _, tt := range []struct {
		at     string // empty when the policy is good
		change func(*admissionregistrationv1.ValidatingAdmissionPolicy)
	}{
		{"", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {}},
		{"metadata.name", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Name = "A" }},
		{"spec.failurePolicy", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.FailurePolicy = nil }},
		{"spec.paramKind.kind", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "x.io/v1", Kind: "a b"}
		}},
		{"spec.paramKind.apiVersion", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "x_io/v1", Kind: "A"}
		}},
		{"spec.matchConstraints", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.MatchConstraints = nil }},
		{"spec.matchConstraints.resourceRules", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConstraints.ResourceRules = nil
		}},
		{"spec.matchConstraints.namespaceSelector", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConstraints.NamespaceSelector = nil
		}},
		{"spec.matchConstraints.objectSelector", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConstraints.ObjectSelector.MatchLabels = map[string]string{"a": "no value"}
		}},
		{"spec.matchConstraints.matchPolicy", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.MatchConstraints.MatchPolicy = nil }},
		{"spec.matchConstraints.resourceRules[0].operations", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			rule(p).Operations = []admissionregistrationv1.OperationType{"*", "CREATE"}
		}},
		{"spec.matchConstraints.resourceRules[0].operations[0]", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			rule(p).Operations = []admissionregistrationv1.OperationType{"PATCH"}
		}},
		{"spec.matchConstraints.resourceRules[0].apiGroups", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { rule(p).APIGroups = nil }},
		{"spec.matchConstraints.resourceRules[0].apiVersions[0]", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { rule(p).APIVersions = []string{""} }},
		{"spec.matchConstraints.resourceRules[0].apiVersions", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			rule(p).APIVersions = []string{"v1", "*"}
		}},
		{"spec.matchConstraints.resourceRules[0].resources", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { rule(p).Resources = []string{"*", "pods"} }},
		{"", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			rule(p).Resources = []string{"*", "pods/exec"}
		}},
		{"spec.matchConstraints.resourceRules[0].resources[1]", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			rule(p).Resources = []string{"pods/*", "pods/exec"}
		}},
		{"spec.matchConstraints.resourceRules[0].resources", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			rule(p).Resources = []string{"*/*", "pods"}
		}},
		{"spec.matchConstraints.resourceRules[0].resourceNames[1]", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { rule(p).ResourceNames = []string{"a", "a"} }},
		{"spec.matchConstraints.resourceRules[0].scope", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { rule(p).Scope = nil }},
		{"spec.validations", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.Validations = nil }},
		{"spec.validations[0].expression", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.Validations[0].Expression = "object.spec.x"
		}},
		{"spec.validations[0].expression", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.Validations[0].Expression = "variables.none == 1"
		}},
		{"spec.validations[0].expression", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.Validations[0].Expression = "params.x == 1"
		}},
		{"spec.validations[0].message", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Message = " " }},
		{"spec.validations[0].message", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.Validations[0].Message = "a\nb" }},
		{"spec.validations[0].messageExpression", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.Validations[0].MessageExpression = "object.metadata.name"
		}},
		{"spec.validations[0].messageExpression", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.Validations[0].MessageExpression = "string(authorizer.path('/').check('get').allowed())"
		}},
		{"spec.validations[0].reason", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.Validations[0].Reason = new(metav1.StatusReasonUnauthorized)
		}},
		{"spec.matchConditions[0].expression", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConditions[0].Expression = "variables.team == ''"
		}},
		{"spec.matchConditions[0].name", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) { p.Spec.MatchConditions[0].Name = "a b" }},
		{"spec.variables[0].name", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.Variables = append([]admissionregistrationv1.Variable{{Name: "namespace", Expression: "1"}}, p.Spec.Variables...)
		}},
		{"spec.variables[1].expression", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.Variables = append(p.Spec.Variables, admissionregistrationv1.Variable{Name: "x", Expression: "variables.later"})
		}},
		{"spec.auditAnnotations[0].key", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "a b", ValueExpression: "'x'"}}
		}},
		{"spec.auditAnnotations[0].valueExpression", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
			p.Spec.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "a", ValueExpression: "1"}}
		}},
	} {
		t.Run(tt.at, func(t *testing.T) {
			p := emit(t, teamDraft(), vap.EmitOptions{}).Policy
			tt.change(p)
			var got []string
			for _, e := range Validate(p, cel.Latest) {
				got = append(got, e.Field)
			}
			if strings.Join(got, " ") != tt.at {
				t.Errorf("errors at %q, want one at %q: %v", got, tt.at, Validate(p, cel.Latest))
			}
		})
	}
}

// A function counts one release after the one that brought it.
func TestValidateByRelease(t *testing.T) {
	for _, tt := range []struct {
		expression string
		since      cel.Release
	}{
		{"object.?a.orValue('') == ''", 30},
		{"isIP(object.a)", 31},
		{"!format.dns1123Label().validate(object.a).hasValue()", 32},
		{"object.a.all(k, v, v == 1)", 33},
		{"isSemver(object.a)", 34},
		{"[1, 2].distinct() == [1, 2]", 35},
	} {
		for r := cel.Oldest; r <= cel.Latest; r++ {
			p := emit(t, teamDraft(), vap.EmitOptions{}).Policy
			p.Spec.Validations[0].Expression = tt.expression
			if errs := Validate(p, r); (len(errs) == 0) != (r >= tt.since) {
				t.Errorf("%s on %s: %v", tt.expression, r, errs)
			}
		}
	}
}

func TestValidateBinding(t *testing.T) {
	for _, tt := range []struct {
		at     string
		change func(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
	}{
		{"", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {}},
		{"spec.policyName", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) { b.Spec.PolicyName = "A" }},
		{"spec.validationActions", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) { b.Spec.ValidationActions = nil }},
		{"spec.validationActions", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{"Deny", "Warn"}
		}},
		{"spec.validationActions[1]", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{"Audit", "Audit"}
		}},
		{"spec.validationActions[0]", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{"Block"}
		}},
		{"spec.paramRef.parameterNotFoundAction", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: "a"}
		}},
		{"spec.paramRef", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.ParamRef = &admissionregistrationv1.ParamRef{ParameterNotFoundAction: new(admissionregistrationv1.DenyAction)}
		}},
		{"spec.matchResources.objectSelector", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
			b.Spec.MatchResources.ObjectSelector = nil
		}},
	} {
		t.Run(tt.at, func(t *testing.T) {
			b := emit(t, teamDraft(), vap.EmitOptions{}).Bindings[0]
			tt.change(b)
			var got []string
			for _, e := range ValidateBinding(b) {
				got = append(got, e.Field)
			}
			if strings.Join(got, " ") != tt.at {
				t.Errorf("errors at %q, want one at %q: %v", got, tt.at, ValidateBinding(b))
			}
		})
	}
}

// podSchema knows of pods that they have a spec with hostNetwork.
type podSchema struct{}

func (podSchema) ResolveSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	if gvk.Kind != "Pod" {
		return nil, resolver.ErrSchemaNotFound
	}
	object := func(properties map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: properties}}
	}
	s := object(map[string]spec.Schema{
		"apiVersion": *spec.StringProperty(), "kind": *spec.StringProperty(),
		"metadata": object(map[string]spec.Schema{"name": *spec.StringProperty(), "generateName": *spec.StringProperty(), "labels": *spec.MapProperty(spec.StringProperty())}),
		"spec":     object(map[string]spec.Schema{"hostNetwork": *spec.BooleanProperty()}),
	})
	return &s, nil
}

func TestWithoutClock(t *testing.T) {
	const text = "/v1, Kind=Pod: ERROR: <input>:4:28: no '_+_' for '(list(Pod177479118.spec.containers.@idx), Pod1)'\n | object.spec.Pods[0] + 177479118"
	const want = "/v1, Kind=Pod: ERROR: <input>:4:28: no '_+_' for '(list(Pod.spec.containers.@idx), Pod)'\n | object.spec.Pods[0] + 177479118"
	if got := withoutClock(text); got != want {
		t.Errorf("got %s", got)
	}
}

func TestTypeCheck(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	p := emit(t, teamDraft(), vap.EmitOptions{}).Policy
	if got := TypeCheck(p, podSchema{}, mapper); len(got) > 0 {
		t.Fatalf("a good policy: %v", got)
	}
	p.Spec.Validations[1].Expression = "object.spec.nope == 1"
	p.Spec.Validations[0].MessageExpression = "string(object.spec.none)"
	p.Spec.Variables = append(p.Spec.Variables, admissionregistrationv1.Variable{Name: "bad", Expression: "object.spc"},
		admissionregistrationv1.Variable{Name: "follows", Expression: "variables.bad"})
	p.Spec.MatchConditions[0].Expression = "object.metadata.nme == ''"
	p.Spec.AuditAnnotations = []admissionregistrationv1.AuditAnnotation{{Key: "a", ValueExpression: "object.spec.what"}}
	var got []string
	for _, w := range TypeCheck(p, podSchema{}, mapper) {
		if !strings.Contains(w.String(), "undefined field") {
			t.Error(w)
		}
		hidden := ""
		if w.Hidden {
			hidden = " hidden"
		}
		got = append(got, w.Field+hidden)
	}
	want := []string{
		"spec.validations[0].messageExpression",
		"spec.validations[1].expression",
		"spec.variables[1].expression hidden",
		"spec.auditAnnotations[0].valueExpression hidden",
	}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
