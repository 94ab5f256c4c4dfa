//go:build e2e

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A real API server takes every object that convert writes.
func TestObjectsAreAccepted(t *testing.T) {
	for _, f := range forms() {
		t.Run(f.String(), func(t *testing.T) {
			accepted := 0
			for _, s := range subjects(t) {
				for _, o := range shared.convert(t, s, f).objects {
					resource, ok := resourceOf(o)
					if !ok {
						continue // what a binding refers to
					}
					_, err := shared.judged.Resource(resource).Create(t.Context(), o, metav1.CreateOptions{
						DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
					})
					if err != nil {
						t.Errorf("%s: %s %s: %v", s.name, o.GetKind(), o.GetName(), err)
						continue
					}
					accepted++
				}
			}
			t.Logf("%d objects accepted", accepted)
			if *only == "" && accepted < 800 {
				t.Errorf("only %d objects; are the fixtures there?", accepted)
			}
		})
	}
}
