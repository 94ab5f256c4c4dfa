package webhook

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/interp"
)

// mutate answers with a patch.
func (s *Server) mutate(_ context.Context, _ []*served, _ *review, _ *interp.Request) (*admissionv1.AdmissionResponse, error) {
	return &admissionv1.AdmissionResponse{Allowed: true}, nil
}
