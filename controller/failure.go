package controller

import (
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reasonOf is the reason of a condition for an error.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, errForeign), errors.Is(err, errReserved):
		return "NameTaken"
	case errors.Is(err, errNoFallback):
		return "NoWebhook"
	case errors.Is(err, errNotReached), errors.Is(err, errNotTakenUp):
		return "NotReached"
	case errors.Is(err, errGoing):
		return "NamespaceTerminating"
	case apierrors.IsForbidden(err):
		return "Forbidden"
	case apierrors.IsInvalid(err):
		return "Refused"
	}
	return "Failed"
}

// errNoFallback is a fallback that serves nothing although something remains.
var errNoFallback = errors.New("this controller runs without the webhook")

// errNotReached is a webhook that no request of an API server comes to.
var errNotReached = errors.New("the webhook is not reached yet, so no request may depend on it")

// errNotTakenUp are configurations by which no request of an API server comes to the webhook.
var errNotTakenUp = errors.New("API servers are not seen to ask the webhook as it was registered last, so what judged before goes on")

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // kvap's own types always marshal
	}
	return string(text)
}
