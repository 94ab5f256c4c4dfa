package controller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// unserving is an API server that serves no group.
type unserving struct{ discovery.DiscoveryInterface }

func (unserving) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}

// A kind that is defined and not served yet has policies that nobody knows: a pass
// would remove what enforces them.
func TestDefinedIsNotGone(t *testing.T) {
	w := newWatcher(nil, nil, unserving{}, nil, nil, newOutages(func() {}))
	defined := map[string]bool{"clusterpolicies.kyverno.io": true}
	if _, _, err := w.update(t.Context(), defined); err == nil {
		t.Error("a pass goes on without the policies")
	}
	w.missed["clusterpolicies.kyverno.io"] = time.Now().Add(-comeUpTime)
	if _, waiting, err := w.update(t.Context(), defined); err != nil || !waiting {
		t.Errorf("after a while: waiting %t, %v", waiting, err)
	}
}

// broken is a cluster that refuses everything.
type broken struct{ client.Client }

var errBroken = errors.New("refused")

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBroken
}

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error { return errBroken }

// A process that judges is ready, whatever becomes of its pass: else nobody answers
// where API servers ask already.
func TestReadyOnceItJudges(t *testing.T) {
	said := false
	w := &webhooks{fallback: asking{}, client: broken{}, answering: func(err error) { said = err == nil }}
	if err := w.serve(t.Context(), Remaining{}); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if !said {
		t.Error("it judges and is not ready")
	}
}

// A webhook that may not read what its rules need answers nobody, so it is not ready, also
// where the native policies are in force; once it has answered it is.
func TestNotReadyWithoutRights(t *testing.T) {
	p := &reconciler{}
	w := &webhooks{fallback: refusing{}, client: broken{}, answering: p.answering}
	if err := w.serve(t.Context(), Remaining{}); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	if err := p.ready(nil); !errors.Is(err, errBroken) {
		t.Errorf("it answers nobody, and says %v", err)
	}
	w.fallback = asking{}
	_ = w.serve(t.Context(), Remaining{})
	w.fallback = refusing{}
	_ = w.serve(t.Context(), Remaining{})
	if err := p.ready(nil); err != nil {
		t.Errorf("it goes on with what it had, and says %v", err)
	}
}

// refusing is a Fallback that cannot serve.
type refusing struct{ NoFallback }

func (refusing) Serve(context.Context, Remaining) (Serving, error) { return Serving{}, errBroken }

// asking is a Fallback that judges and wants to be asked.
type asking struct{ NoFallback }

func (asking) Serve(context.Context, Remaining) (Serving, error) {
	return Serving{Configurations: []Configurations{{Validating: &admissionregistrationv1.ValidatingWebhookConfiguration{}}}}, nil
}

// A last good version that cannot be asked for is not one that is not there: without
// it the policy would be enforced no longer.
func TestUnknownLastGood(t *testing.T) {
	s := &statusWriter{direct: broken{}}
	l := &policyLister{mode: "enforce", remembered: s.remembered}
	o := object(t, "1", "rules:", "rulez:")
	if _, err := l.source(t.Context(), o, "p", l.mode); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
	l.remembered = func(context.Context, v1alpha1.PolicyReference) ([]byte, error) { return nil, nil }
	if got, err := l.source(t.Context(), o, "p", l.mode); err != nil || got.policy != nil && got.policy.Action == policy.Enforce && !got.policy.Invalid {
		t.Errorf("%v %v", got, err)
	}
}

// A controller begins where nothing answers, or kvap's kinds are not served yet, as when
// it is installed together with their definitions.
func TestBeginsBeforeTheDefinitions(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if _, err := newManager(&rest.Config{Host: server.URL}, Options{MetricsAddress: "0", HealthAddress: "0", PprofAddress: "0"}, nil, logr.Discard()); err != nil {
		t.Error(err)
	}
}
