package celpolicy

import (
	"testing"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// What means the same to Kyverno stays as it is written, and nothing else.
func TestExpressions(t *testing.T) {
	for _, tt := range []struct{ native, want string }{
		{"object.spec.a  ==  1", "object.spec.a  ==  1"},
		{"object == null || object.spec.a == 1", "request.operation == 'DELETE' || object.spec.a == 1"},
		{"(object == null ? oldObject : object).spec.a", "(request.operation == 'DELETE' ? oldObject : object).spec.a"},
		{"object != null", "request.operation != 'DELETE'"},
		{"oldObject == null || oldObject.spec.a", "!has(oldObject.metadata) || oldObject.spec.a"},
		{"oldObject != null", "has(oldObject.metadata)"},
		{"object.?spec.?a.orValue(true)", "object.?spec.?a.orValue(true) == true"},
		{"has(object.a) ? object.?a.orValue(true) : false", "(has(object.a) ? object.?a.orValue(true) : false) == true"},
		{"!object.?spec.?a.orValue(true)", "!object.?spec.?a.orValue(true)"},
		{"variables.a", "variables.a == true"},
		{"variables.b", "variables.b"},
		{"dyn(object.spec).?template.hasValue()", "object.spec.?template.hasValue()"},
		{"params.data.a == 'b'", "variables.params.data.a == 'b'"},
		{"null == oldObject || null != object", "!has(oldObject.metadata) || request.operation != 'DELETE'"},
		// Kyverno computes what is after orValue in any case
		{"object.?a.orValue(object) == object", "object.?a.orValue(object) == object"},
		{"object.?a.orValue([]) == []", "object.?a.orValue([]) == []"},
		{"object.?a.orValue(object.b) == 1", "object.?a.or(optional.of(object.b)).value() == 1"},
		{"object.?a.orValue(object.?b.orValue(object.c)) == 1", "object.?a.or(optional.of(object.?b.or(optional.of(object.c)).value())).value() == 1"},
	} {
		e := newExpressions(&policy.Policy{}, &vap.Draft{ParamKind: &vap.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}}, vap.Binding{Param: &vap.ParamRef{Name: "c", Namespace: "n"}})
		e.untyped["a"] = true
		if got := e.boolean(tt.native, true); got != tt.want || e.why != nil {
			t.Errorf("%s:\ngot  %s\nwant %s (%v)", tt.native, got, tt.want, e.why)
		}
	}
}

// What Kyverno does not have is refused, with a reason.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		ref    vap.ParamRef
		policy policy.Policy
		native string
	}{
		{native: "authorizer.group('').resource('pods').check('get').allowed()"},
		{ref: vap.ParamRef{Name: "c", Namespace: "other"}, policy: policy.Policy{Kind: "Policy", Namespace: "own"}, native: "params.data.a"},
		{ref: vap.ParamRef{Selector: &vap.Selector{}}, native: "params.data.a"},
		{native: "object.a.orValue(object.b) == 1"}, // object.b may be missing, and object.a may be no optional
	} {
		e := newExpressions(&tt.policy, &vap.Draft{ParamKind: &vap.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}}, vap.Binding{Param: &tt.ref})
		if e.boolean(tt.native, true); e.why == nil {
			t.Errorf("%s is not refused", tt.native)
		}
	}
}

// To Kyverno a Namespace is in a namespace, itself; natively it is in none.
func TestNamespaceOfNamespace(t *testing.T) {
	itself := "request.resource.group == '' && request.resource.resource == 'namespaces'"
	for _, tt := range []struct{ resource, native, want string }{
		{"pods", "namespaceObject == null", "namespaceObject == null"},
		{"*", "namespaceObject == null", "namespaceObject == null || " + itself},
		{"namespaces", "namespaceObject == null || namespaceObject.metadata.name == 'a'",
			"(\n  namespaceObject == null ||\n  " + itself + "\n) ||\nnamespaceObject.metadata.name == 'a'"},
		{"namespaces", "namespaceObject.metadata.name == 'a'", ""},
	} {
		d := &vap.Draft{Constraints: vap.Constraints{Rules: []vap.ResourceRule{{Groups: []string{""}, Resources: []string{tt.resource}}}}}
		e := newExpressions(&policy.Policy{}, d, vap.Binding{})
		if got := e.boolean(tt.native, true); (e.why == nil) != (tt.want != "") || e.why == nil && got != tt.want {
			t.Errorf("%s of %s:\ngot  %s\nwant %s (%v)", tt.native, tt.resource, got, tt.want, e.why)
		}
	}
}
