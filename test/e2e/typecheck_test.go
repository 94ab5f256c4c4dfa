//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/test/e2e/attempt"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// ofTypeCheck labels the policies that TestTypeCheck makes, with their source in
// an annotation.
const (
	ofTypeCheck = "kvap.dev/e2e-type-check"
	subjectOf   = "kvap.dev/e2e-subject"
)

// The type checker of a real cluster, which knows the cluster's own schemas, has
// nothing to say of an expression that kvap wrote. The custom kinds of fixtures must not
// be defined yet: their stand-ins have no fields, of which it would warn. So the tests
// that define them are in files that come later.
func TestTypeCheck(t *testing.T) {
	for r, kind := range attempt.CustomKinds() {
		at := attempt.Collection{Resource: r}
		if _, err := at.In(shared.unjudged).List(t.Context(), metav1.ListOptions{Limit: 1}); !apierrors.IsNotFound(err) {
			t.Fatalf("a test that came before has defined %s (%v)", kind, err)
		}
	}
	var made []*unstructured.Unstructured
	for _, s := range subjects(t) {
		if s.userCEL {
			continue
		}
		for _, f := range forms() {
			for _, p := range ofKind(shared.convert(t, s, f).objects, "ValidatingAdmissionPolicy") {
				p = p.DeepCopy()
				p.SetName(fmt.Sprintf("e2e-%d", len(made)))
				p.SetLabels(map[string]string{ofTypeCheck: ""})
				p.SetAnnotations(map[string]string{subjectOf: s.name + " " + f.String()})
				made = append(made, p)
			}
		}
	}
	if *only == "" && len(made) < 400 {
		t.Errorf("only %d policies; are the fixtures there?", len(made))
	}
	createAll(t, made)
	for _, p := range awaitTypeChecks(t, len(made)) {
		warnings, _, _ := unstructured.NestedSlice(p.Object, "status", "typeChecking", "expressionWarnings")
		for _, w := range warnings {
			w := w.(map[string]any)
			t.Errorf("%s: %s: %s", p.GetAnnotations()[subjectOf], w["fieldRef"], strings.Join(strings.Fields(fmt.Sprint(w["warning"])), " "))
		}
	}
}

// createAll makes the policies, which judge nothing for want of bindings, and
// removes them in the end.
func createAll(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	client := shared.unjudged.Resource(policies)
	t.Cleanup(func() {
		err := client.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: ofTypeCheck})
		if err != nil {
			t.Log(err)
		}
	})
	var group sync.WaitGroup
	slots := make(chan struct{}, 4)
	for _, o := range objects {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if _, err := client.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				t.Errorf("%s: %v", o.GetAnnotations()[subjectOf], err)
			}
		})
	}
	group.Wait()
}

// awaitTypeChecks returns the policies when the status of each is of what is stored.
func awaitTypeChecks(t *testing.T, want int) []unstructured.Unstructured {
	t.Helper()
	var checked []unstructured.Unstructured
	testcluster.Soon(t, "every policy has been type-checked", func() bool {
		list, err := shared.unjudged.Resource(policies).List(t.Context(), metav1.ListOptions{LabelSelector: ofTypeCheck})
		if err != nil {
			t.Fatal(err)
		}
		checked = nil
		for _, p := range list.Items {
			seen, _, _ := unstructured.NestedInt64(p.Object, "status", "observedGeneration")
			if seen == p.GetGeneration() {
				checked = append(checked, p)
			}
		}
		if t.Failed() { // some could not be made
			return len(checked) == len(list.Items)
		}
		return len(checked) == want
	})
	return checked
}
