//go:build e2e

package controller

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
)

// A policy in force denies and admits; taken away, it admits again.
func TestEnforce(t *testing.T) {
	shared.control(t, controller.Options{Mode: v1alpha1.ModeEnforce})
	shared.apply(t, requires("owners", "owner", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "owners")

	err := shared.tryCreate(t.Context(), nil)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "The label owner is missing.") {
		t.Errorf("without the label: %v", err)
	}
	if err := shared.tryCreate(t.Context(), map[string]string{"owner": "me"}); err != nil {
		t.Errorf("with the label: %v", err)
	}
	shared.apply(t, requires("owners", "team", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "owners")
	if err := shared.tryCreate(t.Context(), map[string]string{"owner": "me"}); !apierrors.IsInvalid(err) {
		t.Errorf("after the change, without the new label: %v", err)
	}
}
