package incluster

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A process is gone where its Pod is not there, as far as that is known; this one is not.
func TestReplicasThatAreGone(t *testing.T) {
	there, changes := map[string]error{
		"gone": apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "gone"), "unknown": errors.New("forbidden"),
		"self": apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "self"),
	}, 0
	r := newReplicas("self", func(_ context.Context, name string) error { return there[name] }, func() { changes++ })
	all := []string{"gone", "unknown", "there", "self"}
	for _, name := range all {
		if r.gone(name) {
			t.Errorf("%s is gone, and nobody has looked", name)
		}
	}
	if r.look(t.Context()); changes != 1 {
		t.Errorf("%d changes", changes)
	}
	for _, name := range all {
		if got := r.gone(name); got != (name == "gone") {
			t.Errorf("%s is gone: %t", name, got)
		}
	}
	if r.look(t.Context()); len(r.known) != 3 || changes != 1 {
		t.Errorf("what was told is forgotten: %v, %d changes", r.known, changes)
	}
}

// Where this process does not know its Pod, its names are those of hosts, and nobody is gone.
func TestReplicasWithoutNames(t *testing.T) {
	r := newReplicas("", func(_ context.Context, name string) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name)
	}, func() { t.Error("a change") })
	for range 2 {
		if r.gone("node") {
			t.Error("a node is gone")
		}
		r.look(t.Context())
	}
}
