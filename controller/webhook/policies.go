package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/controller/webhook/registration"
)

// A PolicyReview says what is wrong with a policy, or an exception from one, that somebody
// writes: why it is refused, and what users should know. before is nil where it is new.
type PolicyReview func(ctx context.Context, policy, before map[string]any) (refusals, warnings []string)

const (
	maxPolicy   = 4 << 20 // of a review of a policy, which has it twice
	maxRefusals = 20      // that an answer names
)

// policies answers about policies that are written. An error is no refusal: API servers go on.
func (s *Server) policies(w http.ResponseWriter, r *http.Request) {
	const verb = "policies"
	began, answer := time.Now(), "refused"
	defer func() {
		s.metrics.requests.WithLabelValues(verb, answer).Inc()
		s.metrics.duration.WithLabelValues(verb).Observe(time.Since(began).Seconds())
	}()
	if s.options.Policies == nil {
		s.refuse(w, r, http.StatusNotFound, "nobody looks at policies here")
		return
	}
	if status, message := s.acceptable(r); status != 0 {
		s.refuse(w, r, status, message)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.timeout(r))
	defer cancel()
	in, done, err := s.read(ctx, w, r, maxPolicy, func([]byte) func(context.Context) error { return nil })
	if err != nil {
		s.refuse(w, r, statusOf(err), err.Error())
		return
	}
	defer done()
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if s.looksAt(in) {
		end, err := s.turns.Take(ctx, hostOf(r), registration.PoliciesPath)
		if err != nil {
			s.refuse(w, r, statusOf(errBusy), errBusy.Error())
			return
		}
		defer end()
		response = verdict(s.options.Policies(ctx, in.object, in.old))
	}
	answer = answerOf(response)
	write(w, in.uid, response)
}

// looksAt tells whether what is written of a policy is looked at: not what the program itself
// writes, nor what only changes the metadata of one that is there, or that is going.
func (s *Server) looksAt(r *review) bool {
	if r.operation != "CREATE" && r.operation != "UPDATE" || r.object == nil || r.user.Name != "" && r.user.Name == s.options.User {
		return false
	}
	going := r.subject().GetDeletionTimestamp() != nil
	return !going && (r.old == nil || !equality.Semantic.DeepEqual(r.object["spec"], r.old["spec"]))
}

func verdict(refusals, warnings []string) *admissionv1.AdmissionResponse {
	out := &admissionv1.AdmissionResponse{Allowed: len(refusals) == 0}
	for _, text := range warnings[:min(len(warnings), maxWarnings)] {
		out.Warnings = append(out.Warnings, shorten(text, maxWarning))
	}
	if out.Allowed {
		return out
	}
	if more := len(refusals) - maxRefusals; more > 0 {
		refusals = append(refusals[:maxRefusals:maxRefusals], fmt.Sprintf("and %d more", more))
	}
	out.Result = &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
		Message: shorten(strings.Join(refusals, "\n"), maxAnnotation),
	}
	return out
}
