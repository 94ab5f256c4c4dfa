package cluster

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kvap/kvap/internal/exit"
)

// LeftOut is what could not be read, and why. What it is part of goes on without.
type LeftOut struct{ Left []error }

// Leave notes what may not be read. Any other error ends the reading.
func (l *LeftOut) Leave(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // a CRD that has just gone
		l.Left = append(l.Left, err)
		return nil
	}
	return err
}

// Err says what was not read, and what is incomplete for that.
func (l *LeftOut) Err(what string) error {
	if len(l.Left) == 0 {
		return nil
	}
	return exit.Partly(fmt.Errorf("some objects could not be read, so %s is incomplete: %w", what, errors.Join(l.Left...)))
}
