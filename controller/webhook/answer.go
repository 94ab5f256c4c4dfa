package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/interp"
)

// A handler answers a review by the policies of a route. An error is not a denial: the
// failure policy decides.
type handler func(ctx context.Context, policies []*servedPolicy, r *review, req *interp.Request) (*admissionv1.AdmissionResponse, error)

// admission is the way of a request: find its policies, read as memory and the turns of its
// namespace allow, wait for a turn, judge, answer.
func (s *Server) admission(verb registration.Verb, handle handler) http.HandlerFunc {
	return s.recovers(func(w http.ResponseWriter, r *http.Request) {
		began, answer := time.Now(), "refused"
		s.metrics.inFlight.Inc()
		defer func() {
			s.metrics.inFlight.Dec()
			s.metrics.requests.WithLabelValues(string(verb), answer).Inc()
			s.metrics.duration.WithLabelValues(string(verb)).Observe(time.Since(began).Seconds())
		}()
		current := s.current.Load()
		if current == nil {
			s.refuse(w, r, http.StatusServiceUnavailable, errNotReady.Error())
			return
		}
		if status, message := s.acceptable(r); status != 0 {
			s.refuse(w, r, status, message)
			return
		}
		policies, known := current.at(r.URL.Path, s.options.Now())
		if !known && !slices.Contains(shared(), r.URL.Path) {
			s.refuse(w, r, http.StatusNotFound, "no policy has this path yet")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.timeout(r))
		defer cancel()
		end := func() {}
		defer func() { end() }()
		in, done, err := s.read(ctx, w, r, s.options.MaxBytes, func(beginning []byte) func(context.Context) error {
			namespace, is := ofNamespace(policies, beginning)
			if !is {
				return nil
			}
			return func(ctx context.Context) (err error) {
				end, err = s.turnOfNamespace(ctx, hostOf(r), namespace)
				return err
			}
		})
		if err != nil {
			s.refuse(w, r, statusOf(err), err.Error())
			return
		}
		defer done()
		answer = "failed"
		response, err := s.inTurn(ctx, handle, local(policies, in.namespace), in, hostOf(r), r.URL.Path+" "+in.kind())
		if err != nil {
			s.options.Record(Record{Request: in.describe(), Err: err})
			s.refuse(w, r, http.StatusInternalServerError, err.Error(), "resource", in.resource(), "operation", in.operation)
			return
		}
		answer = answerOf(response)
		write(w, in.uid, response)
	})
}

// read reads a review of at most limit bytes, which is in memory until done. Behind its
// beginning it goes on when what begun returns has come to its end; nil is nothing to wait for.
func (s *Server) read(ctx context.Context, w http.ResponseWriter, r *http.Request, limit int64, begun func(beginning []byte) func(context.Context) error) (in *review, done func(), err error) {
	if r.ContentLength > limit {
		return nil, nil, fmt.Errorf("%w of %d bytes", errTooLarge, limit)
	}
	b, err := s.memory.read(ctx, w, r, limit, begun)
	if err != nil {
		return nil, nil, err
	}
	if in, done, err = s.memory.decode(ctx, b); err == nil {
		brought(r.Context())
	}
	return in, done, err
}

// local are the policies of the cluster and, for a request in a namespace, of that namespace.
func local(policies []*servedPolicy, namespace string) []*servedPolicy {
	return slices.DeleteFunc(policies, func(p *servedPolicy) bool { return p.Namespaced() && namespace != "" && p.Namespace != namespace })
}

// shared are the paths that exist whether or not a policy is there: when the last one goes,
// requests may still come for a while.
func shared() []string {
	return []string{"/validate/fail", "/validate/ignore", "/mutate/fail", "/mutate/ignore", "/mutate/fail/once", "/mutate/ignore/once"}
}

func (s *Server) acceptable(r *http.Request) (status int, message string) {
	if !s.isAPIServer(r) {
		return http.StatusForbidden, "only the API server may ask, with its client certificate"
	}
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
	switch {
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, errSlow):
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// timeout is what the API server waits, less what the way back may take.
func (s *Server) timeout(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 || d > 30*time.Second {
		return judgeTimeout
	}
	return d - d/20
}

// inTurn judges when there is a turn.
func (s *Server) inTurn(ctx context.Context, handle handler, policies []*servedPolicy, r *review, host, crowd string) (*admissionv1.AdmissionResponse, error) {
	excluded := slices.ContainsFunc(r.user.Groups, func(g string) bool { return slices.Contains(s.options.ExcludeGroups, g) })
	if len(policies) == 0 || excluded { // whom no rule is about
		return &admissionv1.AdmissionResponse{Allowed: true}, nil
	}
	began := time.Now()
	done, err := s.turns.Take(ctx, host, crowd)
	s.metrics.waits.WithLabelValues(waitTurn).Observe(time.Since(began).Seconds())
	if err != nil {
		return nil, errBusy
	}
	defer done()
	req := &interp.Request{Admission: r.request}
	if s.options.Roles != nil {
		if req.Roles, req.ClusterRoles, err = s.options.Roles(ctx, r.user, r.namespace); err != nil {
			return nil, err
		}
	}
	if r.dryRun && s.options.DryRun != nil {
		ctx = s.options.DryRun(ctx)
	}
	ctx, cancel := withNamespace(ctx)
	defer cancel()
	return handle(ctx, policies, r, req)
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

// maxProbe bounds the review of a probe, which is about a small object.
const maxProbe = 64 << 10

// probe answers the API server that wants to know whether it reaches the webhook.
func (s *Server) probe(w http.ResponseWriter, r *http.Request) {
	if err := s.Ready(); err != nil {
		s.refuse(w, r, http.StatusServiceUnavailable, err.Error())
		return
	}
	if status, message := s.acceptable(r); status != 0 {
		s.refuse(w, r, status, message)
		return
	}
	in, done, err := s.read(r.Context(), w, r, maxProbe, func([]byte) func(context.Context) error { return nil })
	if err != nil {
		s.refuse(w, r, statusOf(err), err.Error())
		return
	}
	defer done()
	name, _ := in.request["name"].(string)
	write(w, in.uid, &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{name + " is reached"}})
}
