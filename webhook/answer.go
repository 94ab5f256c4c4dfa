package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/interp"
)

// A handler answers a review by the policies of a place. An error is no denial: the
// failure policy decides.
type handler func(ctx context.Context, policies []*served, r *review, req *interp.Request) (*admissionv1.AdmissionResponse, error)

// admission is the way of a request: read, find its policies, wait for a turn,
// judge, answer.
func (s *Server) admission(handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		current := s.current.Load()
		if current == nil {
			http.Error(w, errNotReady.Error(), http.StatusServiceUnavailable)
			return
		}
		if status, message := acceptable(r); status != 0 {
			http.Error(w, message, status)
			return
		}
		policies, known := current.at(r.URL.Path, s.options.Now())
		if !known && !shared(r.URL.Path) {
			http.Error(w, "no policy has this path yet", http.StatusNotFound)
			return
		}
		in, err := decode(r.Body, s.options.MaxBytes)
		if err != nil {
			http.Error(w, err.Error(), statusOf(err))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout(r))
		defer cancel()
		response, err := s.inTurn(ctx, handle, policies, in)
		if err != nil {
			s.options.Record(Record{Request: in.describe(), Err: err})
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, in.uid, response)
	}
}

// shared tells of the paths that exist whether or not a policy is there: when the
// last one goes, requests may still come for a while.
func shared(path string) bool {
	switch path {
	case "/validate/fail", "/validate/ignore", "/mutate/fail", "/mutate/ignore":
		return true
	}
	return false
}

func acceptable(r *http.Request) (status int, message string) {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, "an AdmissionReview is POSTed"
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, "an AdmissionReview is application/json"
	}
	return 0, ""
}

func statusOf(err error) int {
	if errors.Is(err, errTooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// timeout is what the API server waits, less what the way back may take.
func (s *Server) timeout(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 || d > 30*time.Second {
		return s.options.Timeout
	}
	return d - d/20
}

// inTurn judges when there is a turn.
func (s *Server) inTurn(ctx context.Context, handle handler, policies []*served, r *review) (*admissionv1.AdmissionResponse, error) {
	if len(policies) == 0 || s.excluded(r.user) {
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return nil, errors.New("too many requests are being judged")
	}
	req := &interp.Request{Admission: r.request}
	if s.options.Roles != nil {
		var err error
		if req.Roles, req.ClusterRoles, err = s.options.Roles(ctx, r.user, r.namespace); err != nil {
			return nil, err
		}
	}
	return handle(ctx, policies, r, req)
}

// excluded tells of users whom no rule is about.
func (s *Server) excluded(u User) bool {
	return slices.ContainsFunc(u.Groups, func(g string) bool { return slices.Contains(s.options.ExcludeGroups, g) })
}

func write(w http.ResponseWriter, uid string, response *admissionv1.AdmissionResponse) {
	response.UID = types.UID(uid)
	data, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Response: response,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // whoever asked is gone
}
