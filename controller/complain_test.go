package controller

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// What could not be done is logged, also of a policy that is gone and has no status: once,
// until it changes.
func TestComplaints(t *testing.T) {
	var said []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{}))
	refused := map[string]error{"kvap-pods-deny": errors.New("may not be deleted")}
	p := &reconciler{}
	for _, native := range []map[string]error{refused, refused, {}, refused} {
		var fallback error
		if len(native) > 0 {
			fallback = errors.New("no answer")
		}
		p.logFailures(ctx, fallback, nil, native)
	}
	if len(said) != 4 {
		t.Fatalf("%d complaints: %s", len(said), said)
	}
	for i, want := range []string{"kvap-pods-deny", "the webhook", "kvap-pods-deny", "the webhook"} {
		if !strings.Contains(said[i], want) {
			t.Errorf("%s", said[i])
		}
	}
}
