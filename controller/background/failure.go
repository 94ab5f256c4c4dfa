package background

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// excludeIt is what to do about an object that a policy denies.
const excludeIt = "exclude it from the policy that denies it"

// reasonOf is the reason of a notice about a failure.
func reasonOf(err error) string {
	if apierrors.IsForbidden(err) && !isDenied(err) {
		return reasonForbidden
	}
	return reasonFailed
}

// explained says what to do about a permission that is missing, or about a policy that
// denies the object, and nothing of what is in it.
func explained(err error) error {
	err = withoutValues(err)
	switch {
	case err == nil || isEnding(err):
		return err
	case isDenied(err):
		return fmt.Errorf("%w; %s", err, excludeIt)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; %s", err, grantIt)
	}
	return err
}

// denials are what an answer says that comes from a webhook or a
// ValidatingAdmissionPolicy.
var denials = []string{"denied the request", "denied request"}

// isDenied tells that a policy denies the object.
func isDenied(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && slices.ContainsFunc(denials, func(d string) bool { return strings.Contains(status.Status().Message, d) })
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

// People who read events and states may not be allowed to read the objects: a Secret may be
// among them. So what a failure says names variables and paths, and not their values.

// A redactedError says less than the one that it stands for.
type redactedError struct {
	text string
	err  error
}

func (h redactedError) Error() string { return h.text }
func (h redactedError) Unwrap() error { return h.err }

// withoutValues is an error of the API server without values of the object.
func withoutValues(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	full := status.Status()
	if short := shortStatus(full); full.Message != "" && short != full.Message {
		return redactedError{strings.ReplaceAll(err.Error(), full.Message, short), err}
	}
	return err
}

// shortStatus is what an answer says that names fields and permissions only.
func shortStatus(s metav1.Status) string {
	for _, denied := range denials {
		if before, _, found := strings.Cut(s.Message, denied); found {
			return before + denied
		}
	}
	switch s.Reason {
	case metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists, metav1.StatusReasonConflict,
		metav1.StatusReasonUnauthorized, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout, metav1.StatusReasonTooManyRequests:
		return s.Message
	}
	var fields []string
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			if c.Field != "" {
				fields = append(fields, c.Field)
			}
		}
	}
	out := fmt.Sprintf("the API server answers %s (%d)", s.Reason, s.Code)
	if len(fields) > 0 {
		out += " about " + strings.Join(fields, ", ")
	}
	return out
}

// hide is an error of evaluating the rule of a job without the values that it met:
// only quoted text that the rule itself has stays.
func (j job) hide(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return explained(err)
	}
	if text := j.hideText(err.Error()); text != err.Error() {
		return redactedError{text, err}
	}
	return err
}

func (j job) hideText(text string) string {
	for _, opaque := range []string{"incorrect query ", "failed to execute the apiCall: "} { // what follows is made of values, or from outside
		if before, after, found := strings.Cut(text, opaque); found {
			text = before + strings.TrimRight(opaque, ": ")
			if why := missingPermission.FindString(after); why != "" {
				text += ": " + why
			}
		}
	}
	either := regexp.MustCompile(missingPermission.String() + `|` + "`[^`]*`" + `|'[^']*'|"(?:[^"\\]|\\.)*"`)
	return either.ReplaceAllStringFunc(text, func(part string) string {
		if missingPermission.MatchString(part) {
			return part
		}
		inner := part[1 : len(part)-1]
		if holds(j.rule.source, regexp.MustCompile(regexp.QuoteMeta(inner))) {
			return part
		}
		return part[:1] + "…" + part[:1]
	})
}

// missingPermission is what the API server says of a permission that is missing.
var missingPermission = regexp.MustCompile(`[\w./-]+( "[^"]*")? is forbidden: User "[^"]*" cannot [a-z]+ resource "[^"]*" in API group "[^"]*"( in the namespace "[^"]*"| at the cluster scope)?`)
