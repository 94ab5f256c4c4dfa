package webhook

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

// maxProbe bounds the review of a probe, which is about a small object.
const maxProbe = 64 << 10

// probe answers the API server that wants to know whether it reaches the webhook.
func (s *Server) probe(w http.ResponseWriter, r *http.Request) {
	if err := s.Ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if status, message := s.acceptable(r); status != 0 {
		http.Error(w, message, status)
		return
	}
	in, err := decode(r.Body, maxProbe)
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	name, _ := in.request["name"].(string)
	write(w, in.uid, &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{name + " is reached"}})
}
