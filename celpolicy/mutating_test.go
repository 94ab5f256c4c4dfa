package celpolicy

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// Kyverno keeps what a variable was at its first use, which may be in another variable.
func TestChangesBetween(t *testing.T) {
	for _, tt := range []struct {
		mutations []string
		want      bool
	}{
		{[]string{"variables.a", "[]"}, false},
		{[]string{"variables.a", "variables.a"}, true},
		{[]string{"variables.a", "variables.ofA"}, true},
	} {
		var mutations []admissionregistrationv1.Mutation
		for _, text := range tt.mutations {
			mutations = append(mutations, admissionregistrationv1.Mutation{JSONPatch: &admissionregistrationv1.JSONPatch{Expression: text}})
		}
		e := newExpressions(&policy.Policy{}, &vap.Draft{}, vap.Binding{})
		if got := e.changesBetween(mutations); got != tt.want {
			t.Errorf("%v: got %t, want %t", tt.mutations, got, tt.want)
		}
	}
}
