//go:build e2e

package e2e

import (
	"os"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A real API server takes every object that convert writes for its release.
func TestObjectsAreAccepted(t *testing.T) {
	least := 400 // of the fixtures
	if _, err := os.Stat(corpus); err == nil {
		least = 600
	}
	for _, f := range forms() {
		t.Run(f.String(), func(t *testing.T) {
			var accepted atomic.Int64
			t.Cleanup(func() { // when all have ended
				t.Logf("%d objects accepted", accepted.Load())
				if *only == "" && accepted.Load() < int64(least) {
					t.Errorf("only %d objects; are the fixtures there?", accepted.Load())
				}
			})
			for _, s := range subjects(t) {
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					accepted.Add(accept(t, s, f))
				})
			}
		})
	}
}

// accept has the API server say whether it takes what a subject is converted to, and tells
// how many objects it takes.
func accept(t *testing.T, s subject, f form) (n int64) {
	t.Helper()
	for _, o := range shared.convert(t, s, f).objects {
		if o.GroupVersionKind().Group != policies.Group {
			continue // what a binding refers to
		}
		resource := guessed(o)
		_, err := shared.judged.Resource(resource).Create(t.Context(), o, metav1.CreateOptions{
			DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict,
		})
		if err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			continue
		}
		n++
	}
	return n
}
