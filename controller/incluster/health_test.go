package incluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/endpoint"
	"github.com/kvap/kvap/controller/webhook/shadow"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// there are the ConfigMaps of a world without registries.
type there map[string]bool

func (w there) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	if w[namespace+"/"+name] {
		return map[string]any{}, nil
	}
	return nil, fmt.Errorf("a ConfigMap: %w", interp.ErrNotFound)
}

func (there) MayAskAny(pattern string) bool { return strings.HasPrefix(pattern, "ghcr.io/") }

func healthOf(t *testing.T, world there, text string) (h *ruleHealth, p *policy.Policy) {
	t.Helper()
	one := remaining(t, text).Policies[0]
	h = newRuleHealth(world, func() {})
	h.set(map[*policy.Policy]controller.RemainingPolicy{one.Policy: one})
	if got := h.news(); len(got) != 1 || len(got[0].rules) != 0 {
		t.Errorf("of a policy that is new it is told that no rule errs: %+v", got)
	}
	return h, one.Policy
}

// A rule that reads a ConfigMap which is not there can judge nothing, and says so from the
// beginning; which one a request decides is not known before.
func TestMissingConfigMap(t *testing.T) {
	world := there{"default/there": true}
	h, _ := healthOf(t, world, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    context:
    - {name: a, configMap: {name: there}}
    - {name: b, configMap: {name: gone, namespace: team}}
    - {name: c, configMap: {name: "{{ request.name }}", namespace: team}}
    validate: {message: "{{ a.data.x }} {{ b.data.x }} {{ c.data.x }}", deny: {}}
`)
	if !h.look(t.Context(), false) || h.look(t.Context(), true) {
		t.Error("what is missing is news once")
	}
	got := h.problems()
	if len(got) != 1 || !got[0].Missing || !strings.Contains(got[0].Message, "team/gone") || got[0].Source.Name != "p" {
		t.Errorf("%+v", got)
	}
	world["team/gone"] = true
	if h.look(t.Context(), false) || !h.look(t.Context(), true) || len(h.problems()) != 0 {
		t.Errorf("it has come: %+v", h.problems())
	}
}

// What the entries of foreach blocks read counts as what the rule reads.
func TestMissingConfigMapOfALoop(t *testing.T) {
	for body, missing := range map[string]int{
		"validate: {message: m, foreach: [{list: request.object.spec.containers, context: [{name: a, configMap: {name: a, namespace: team}}], deny: {}}]}":                                 1,
		"validate: {message: m, foreach: [{list: request.object.spec.containers, foreach: [{list: element.env, context: [{name: a, configMap: {name: a, namespace: team}}], deny: {}}]}]}": 1,
		"mutate: {foreach: [{list: request.object.spec.containers, context: [{name: a, configMap: {name: a, namespace: team}}], patchStrategicMerge: {metadata: {labels: {a: b}}}}]}":      1,
		"validate: {message: m, foreach: [{list: request.object.spec.containers, deny: {}}]}":                                                                                              0,
	} {
		h, _ := healthOf(t, there{}, "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - name: r\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    "+body+"\n")
		h.look(t.Context(), false)
		if got := h.problems(); len(got) != missing {
			t.Errorf("%s: %+v, want %d problems", body, got, missing)
		}
	}
}

// A rule about images whose registry may not be asked refuses all of them.
func TestRegistryNotAllowed(t *testing.T) {
	h, _ := healthOf(t, there{}, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["ghcr.io/acme/*", "registry.acme.io/*"]
      mutateDigest: false
      attestors: [{entries: [{keys: {publicKeys: "k8s://a/b"}}]}]
`)
	got := h.problems()
	if len(got) != 1 || got[0].Stuck != controller.ReasonRegistryNotAllowed || !strings.Contains(got[0].Message, "registry.acme.io/*") || !strings.Contains(got[0].Message, "--image-registries") {
		t.Errorf("%+v", got)
	}
}

// A rule that has erred on each of several requests is told of, until one comes through; one
// that was not asked anything, or errs now and then, is not.
func TestRuleErrs(t *testing.T) {
	h, p := healthOf(t, there{}, anything)
	note := func(statuses ...interp.Status) {
		for _, status := range statuses {
			h.note(webhook.Record{Of: p, Rule: "r", Status: status, Message: "no such key", Request: webhook.Requested{Resource: "Pod/a/b"}})
		}
	}
	note(interp.Error, interp.Error, interp.Pass, interp.Error, interp.Skip, interp.Error)
	if got := h.news(); len(got) != 0 {
		t.Errorf("it errs now and then: %+v", got)
	}
	note(interp.Error, interp.Error)
	got := h.news()
	if len(got) != 1 || got[0].Source.Kind == "" || len(got[0].rules) != 1 || got[0].rules[0] != (v1alpha1.ErringRule{Rule: "r", Message: "no such key"}) {
		t.Errorf("%+v", got)
	}
	if note(interp.Error); len(h.news()) != 0 {
		t.Error("it is news twice")
	}
	if h.again(got[0].Source); len(h.news()) != 1 {
		t.Error("what could not be told is not told again")
	}
	note(interp.Fail)
	if got := h.news(); len(got) != 1 || len(got[0].rules) != 0 {
		t.Errorf("it judges again: %+v", got)
	}
	for i := range 2 * maxErring {
		for range errsFrom {
			h.note(webhook.Record{Of: p, Rule: fmt.Sprint(i), Status: interp.Error})
		}
	}
	if got := h.news(); len(got) != 1 || len(got[0].rules) != maxErring {
		t.Errorf("want %d rules at most: %+v", maxErring, got)
	}
	h.set(nil)
	if note(interp.Error, interp.Error, interp.Error); len(h.errors) != 0 || len(h.news()) != 0 {
		t.Errorf("of a policy that is gone: %+v", h.errors)
	}
}

// A rule that errs before its policy has a PolicyTranslation is told of once it has one; that no
// rule errs need not be said of what is not there.
func TestErringIsToldWhenItCanBe(t *testing.T) {
	h, p := healthOf(t, there{}, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: a, apiCall: {urlPath: /api/v1/namespaces}}]
    validate: {message: m, deny: {}}
`)
	o := &fallback{log: logr.Discard(), health: h, book: shadow.New("here", time.Now)}
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "policytranslations"}, "p")
	var told []map[string]any
	tell := func(err error) int {
		told = nil
		o.tellNews("here", func(_ v1alpha1.PolicyReference, _ string, status map[string]any) error {
			told = append(told, status)
			return err
		})
		return len(told)
	}
	for range errsFrom {
		h.note(webhook.Record{Of: p, Rule: "r", Status: interp.Error, Message: "it cannot be read"})
	}
	if tell(missing) != 1 || tell(errors.New("no answer")) != 1 || tell(nil) != 1 || told[0]["erring"] == nil {
		t.Errorf("it is told while it cannot be written, last %v", told)
	}
	if tell(nil) != 0 {
		t.Errorf("what was written is told again: %v", told)
	}
	h.note(webhook.Record{Of: p, Rule: "r", Status: interp.Pass})
	if tell(missing) != 1 || tell(missing) != 0 {
		t.Errorf("that no rule errs is said again of what is not there: %v", told)
	}
}

// What is told is about a version of a policy: of another version, or another policy of its name, it
// is told again, also where the webhook judges by the same as before.
func TestErringIsToldOfEachVersion(t *testing.T) {
	h, p := healthOf(t, there{}, anything)
	for range errsFrom {
		h.note(webhook.Record{Of: p, Rule: "r", Status: interp.Error})
	}
	one := h.news()[0].RemainingPolicy
	edited, replaced := one, one
	edited.Generation++
	replaced.Source.UID = "another"
	for name, c := range map[string]struct {
		policy controller.RemainingPolicy
		want   int
	}{"edited": {edited, 1}, "replaced": {replaced, 1}, "as it was": {one, 0}} {
		h.set(map[*policy.Policy]controller.RemainingPolicy{p: one})
		h.news()
		h.set(map[*policy.Policy]controller.RemainingPolicy{p: c.policy})
		got := h.news()
		if len(got) != c.want || c.want > 0 && (len(got[0].rules) != 1 || got[0].Generation != c.policy.Generation || got[0].Source != c.policy.Source) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	h.set(map[*policy.Policy]controller.RemainingPolicy{p: one})
	h.note(webhook.Record{Of: p, Rule: "r", Status: interp.Pass})
	h.news()
	h.set(map[*policy.Policy]controller.RemainingPolicy{p: edited})
	if got := h.news(); len(got) > 0 {
		t.Errorf("no rule errs: %+v", got)
	}
}

// The metric is about the certificate of the server that runs.
func TestExpiryIsOfTheLastServer(t *testing.T) {
	for year := range 2 {
		ends := time.Date(2030+year, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := expiryMetric(shown{leaf: &x509.Certificate{NotAfter: ends}}); err != nil {
			t.Fatal(err)
		}
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		said := 0.0
		for _, f := range families {
			if f.GetName() == "kvap_webhook_certificate_expires_timestamp_seconds" {
				said = f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		if said != float64(ends.Unix()) {
			t.Errorf("of the server until %v: %v", ends, said)
		}
	}
}

// shown is a source with one certificate.
type shown struct {
	endpoint.CertificateSource
	leaf *x509.Certificate
}

func (s shown) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &tls.Certificate{Leaf: s.leaf}, nil
}
