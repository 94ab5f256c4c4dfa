package live

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// An API server that goes away in the middle is waited for; what it refuses is not tried
// again.
func TestUnanswered(t *testing.T) {
	policies := apischema.GroupResource{Group: "kyverno.io", Resource: "clusterpolicies"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":       {nil, false},
		"no connection": {fmt.Errorf("put: %w", errors.New("connection refused")), true},
		"overload":      {apierrors.NewTooManyRequests("later", 1), true},
		"shutting down": {apierrors.NewServiceUnavailable("going"), true},
		"forbidden":     {apierrors.NewForbidden(policies, "p", errors.New("no")), false},
		"a webhook":     {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"too large":     {apierrors.NewInvalid(apischema.GroupKind{}, "p", nil), false},
		"no such kind":  {&meta.NoKindMatchError{}, false},
	} {
		if got := unanswered(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Only what an API server or a webhook has against admission: false says that Kyverno does
// not take it. Who may not try, or gets no answer, knows nothing: the heavier way deletes
// Kyverno's policy.
func TestRefusedByKyverno(t *testing.T) {
	policies := apischema.GroupResource{Group: "kyverno.io", Resource: "clusterpolicies"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"its webhook":       {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Message: `admission webhook "validate-policy.kyverno.svc" denied the request: no`}}, true},
		"its definition":    {apierrors.NewInvalid(apischema.GroupKind{}, "p", nil), true},
		"no permission":     {apierrors.NewForbidden(policies, "p", errors.New(`User "jane" cannot update resource`)), false},
		"no connection":     {errors.New("connection refused"), false},
		"its webhook fails": {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
	} {
		if got := refusedByKyverno(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
