package background

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Reasons of notices.
const (
	reasonFailed    = "BackgroundFailed"
	reasonForbidden = "PermissionMissing"
	reasonChanged   = "RuleChanged"
	// reasonMistrusted is that of a request that the API server did not send.
	reasonMistrusted = "RequestMistrusted"
)

// grantIt is what to do about a permission that is missing.
const grantIt = `grant it by a ClusterRole with the label rbac.kvap.dev/aggregate-to-controller: "true"`

// reasonOf is the reason of a notice about a failure.
func reasonOf(err error) string {
	if apierrors.IsForbidden(err) {
		return reasonForbidden
	}
	return reasonFailed
}

// explained says what to do about a permission that is missing, and nothing of what is
// in the object.
func explained(err error) error {
	err = withoutValues(err)
	if err != nil && apierrors.IsForbidden(err) && !isEnding(err) {
		return fmt.Errorf("%w; %s", err, grantIt)
	}
	return err
}

// isEnding tells that the namespace is on its way out, so that nothing can be made in
// it.
func isEnding(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// mostTold is how many failures of one piece of work are told, and how many objects
// are named.
const mostTold = 50

// joined is some failures as one, the first of them in words.
func joined(failures []error) error {
	if more := len(failures) - mostTold; more > 0 {
		failures = append(failures[:mostTold:mostTold], fmt.Errorf("and %d more", more))
	}
	return errors.Join(failures...)
}
