package apiserver_test

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap/apiserver"
)

func TestDifferences(t *testing.T) {
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "object.a.orValue(true)"}},
		Variables:       []admissionregistrationv1.Variable{{Name: "maybe", Expression: "object.?a"}, {Name: "plain", Expression: "variables.maybe.orValue('')"}},
		Validations: []admissionregistrationv1.Validation{
			{Expression: "variables.maybe.orValue('') == ''", MessageExpression: "variables.plain.orValue('')"},
			{Expression: "object.a.indexOf('-') > 0"},
			{Expression: "object."},
		},
		AuditAnnotations: []admissionregistrationv1.AuditAnnotation{{Key: "a", ValueExpression: "object.a.lastIndexOf(object.b, 3) > 0 ? 'a' : null"}},
	}}
	for oldest, want := range map[int]string{
		37: "[]",
		34: "[spec.matchConditions[0].expression: object.a.orValue(true) means one thing before Kubernetes 1.37 and another since" +
			" spec.validations[0].messageExpression: variables.plain.orValue('') means one thing before Kubernetes 1.37 and another since" +
			" spec.auditAnnotations[0].valueExpression: object.a.lastIndexOf(object.b, 3) means one thing before Kubernetes 1.37 and another since]",
	} {
		if got := fmt.Sprint(apiserver.Differences(p, cel.Release(oldest))); got != want {
			t.Errorf("from 1.%d:\ngot  %s\nwant %s", oldest, got, want)
		}
	}
	if n := len(apiserver.Differences(p, cel.Oldest)); n != 4 {
		t.Errorf("%d differences from the oldest release", n)
	}
}
