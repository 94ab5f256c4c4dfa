package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An outage is one when it has lasted, and is over when attempts no longer fail.
func TestOutages(t *testing.T) {
	now := time.Unix(1000, 0)
	o := newOutages(func() {})
	o.now = func() time.Time { return now }
	kind := schema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "Policy"}
	said := func(begun, lasting bool) {
		t.Helper()
		if o.begun(kind) != begun || (o.of(kind) != nil) != lasting || (o.lasting() == 1) != lasting || (len(o.current()) > 0) != begun {
			t.Errorf("at %s: begun %t, %v", now.UTC(), o.begun(kind), o.of(kind))
		}
	}
	said(false, false)
	o.note(kind.String(), errors.New("refused"))
	said(true, false)
	now = now.Add(outageLasts)
	said(true, false) // it may be over
	o.note(kind.String(), errors.New("refused"))
	said(true, true)
	now = now.Add(outageEnds + time.Second)
	said(false, false)
	o.note(kind.String(), errors.New("refused")) // another one
	said(true, false)
	o.over(kind)
	said(false, false)
}

// An API server that is away, or busy, or has forgotten, has refused nothing.
func TestRefused(t *testing.T) {
	resource := schema.GroupResource{Resource: "policies"}
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{apierrors.NewForbidden(resource, "", errors.New("no")), true},
		{fmt.Errorf("failed to list: %w", apierrors.NewNotFound(resource, "")), true},
		{apierrors.NewInternalError(errors.New("the conversion webhook does not answer")), true},
		{apierrors.NewResourceExpired("too old"), false},
		{apierrors.NewTooManyRequests("busy", 1), false},
		{apierrors.NewServiceUnavailable("busy"), false},
		{errors.New("connection refused"), false},
	} {
		if got := refused(tt.err); got != tt.want {
			t.Errorf("%v: got %t", tt.err, got)
		}
	}
}
