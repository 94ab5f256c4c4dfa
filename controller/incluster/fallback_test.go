package incluster

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/endpoint"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/controller/webhook/shadow"
	"github.com/kvap/kvap/controller/webhook/world"
	"github.com/kvap/kvap/policy"
)

// someCertificate is a CertificateSource that is ready.
type someCertificate struct{}

func (someCertificate) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
func (someCertificate) Bundle() []byte                                             { return nil }
func (someCertificate) Changed() <-chan struct{}                                   { return nil }
func (someCertificate) Ready() error                                               { return nil }
func (someCertificate) Trusted() error                                             { return nil }

// servedOf is a webhook that has no cluster.
func servedOf(t *testing.T) *fallback {
	t.Helper()
	w, err := world.New(&rest.Config{Host: "https://127.0.0.1:1"}, world.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &fallback{
		options: Webhook{Endpoint: endpoint.Endpoint{URL: "https://127.0.0.1:9443"}}, log: logr.Discard(), world: w, certs: someCertificate{},
		server: webhook.New(webhook.Options{World: w}), work: &backgroundWork{},
		book: shadow.New("here", time.Now), health: newRuleHealth(w, func() {}),
	}
}

// remaining are policies of which all rules remain.
func remaining(t *testing.T, texts ...string) controller.Remaining {
	t.Helper()
	var out controller.Remaining
	for _, text := range texts {
		f, ds := policy.Parse("policy.yaml", []byte(text))
		if len(f.Policies) != 1 || ds.HasErrors() {
			t.Fatal(ds)
		}
		p := f.Policies[0]
		ref := v1alpha1.PolicyReference{Group: "kyverno.io", Kind: p.Kind, Name: p.Name}
		out.Policies = append(out.Policies, controller.RemainingPolicy{Source: ref, Policy: p, Rules: p.Rules})
	}
	return out
}

const anything = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: anything}
spec:
  validationFailureAction: Enforce
  rules:
  - name: named
    match: {any: [{resources: {kinds: ["*"]}}]}
    validate: {message: x, deny: {conditions: {any: [{key: a, operator: Equals, value: b}]}}}
`

const unacceptable = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unacceptable}
spec:
  validationFailureAction: Enforce
  webhookConfiguration: {matchConditions: [{name: broken, expression: "object.("}]}
  rules:
  - name: named
    match: {any: [{resources: {kinds: ["*"]}}]}
    validate: {message: x, deny: {conditions: {any: [{key: a, operator: Equals, value: b}]}}}
`

// entriesOf are the entries of what validates.
func entriesOf(s controller.Serving) (out []admissionregistrationv1.ValidatingWebhook) {
	for _, c := range s.Configurations {
		if c.Validating != nil {
			out = append(out, c.Validating.Webhooks...)
		}
	}
	return out
}

// A policy that the webhook cannot be asked about costs itself only, and the
// controller hears why.
func TestLeftOut(t *testing.T) {
	o := servedOf(t)
	got, err := o.Serve(t.Context(), remaining(t, anything, unacceptable))
	if err != nil {
		t.Fatal(err)
	}
	if entries := entriesOf(got); len(entries) != 1 {
		t.Errorf("the other policy is not served: %+v", entries)
	}
	if len(got.Problems) != 1 || got.Problems[0].Source.Name != "unacceptable" || !got.Problems[0].LeftOut || got.Problems[0].Message == "" {
		t.Errorf("%+v", got.Problems)
	}
}

// A configuration of kvap's name that somebody else made, or was given, is left to him: what
// he has there is asked for by another.
func TestTakenNames(t *testing.T) {
	in := remaining(t, anything)
	in.Taken = []string{"kvap-webhook", "foreign"}
	got, err := servedOf(t).Serve(t.Context(), in)
	if err != nil || len(got.Configurations) != 1 || got.Configurations[0].Validating.Name != "kvap-webhook-1" || len(entriesOf(got)) != 1 {
		t.Errorf("%+v, %v", got.Configurations, err)
	}
	if in.Taken = registration.Names(); err == nil {
		if _, err = servedOf(t).Serve(t.Context(), in); err == nil {
			t.Error("nothing is said where all names are taken")
		}
	}
}

// What remains of a policy and cannot be read costs that policy only.
func TestUnreadableRemainder(t *testing.T) {
	in := remaining(t, anything, anything)
	broken := &in.Policies[1]
	broken.Source.Name = "broken"
	broken.Policy.Validating, broken.Policy.Source = &policy.Validating{}, broken.Policy.Source.Get("spec")
	got, err := servedOf(t).Serve(t.Context(), in)
	if err != nil || len(entriesOf(got)) == 0 {
		t.Fatalf("nothing is served: %v", err)
	}
	if len(got.Problems) != 1 || got.Problems[0].Source.Name != "broken" || !got.Problems[0].LeftOut {
		t.Errorf("%+v", got.Problems)
	}
}

// Of a policy in shadow nobody waits for the webhook for long, and no request fails for
// want of its answer, whatever the policy says.
func TestShadowHasNoEffect(t *testing.T) {
	for name, spec := range map[string]string{
		"as it is": "", "old fields": "failurePolicy: Fail\n  webhookTimeoutSeconds: 30\n  ",
		"new fields": "webhookConfiguration: {failurePolicy: Fail, timeoutSeconds: 30}\n  ",
	} {
		in := remaining(t, strings.Replace(anything, "  rules:", "  "+spec+"rules:", 1))
		in.Policies[0].Shadow = true
		got, err := servedOf(t).Serve(t.Context(), in)
		if err != nil || len(entriesOf(got)) != 1 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		w := entriesOf(got)[0]
		if *w.FailurePolicy != admissionregistrationv1.Ignore || *w.TimeoutSeconds != shadowTimeout {
			t.Errorf("%s: %s, %d s", name, *w.FailurePolicy, *w.TimeoutSeconds)
		}
	}
}

// A policy with an expression that does not compile refuses every request that it
// matches: whoever serves it says so, and of no other.
func TestServeTellsWhatDoesNotCompile(t *testing.T) {
	const validating = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  variables: [{name: limits, expression: 'CALL("v1", "configmaps", "default", "limits")'}]
  validations: [{expression: variables.limits.data.team == "a"}]
`
	const rule = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: NAME}
spec:
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {failureAction: Enforce, cel: {expressions: [{expression: "CALL(object.metadata.labels['team'])"}]}}
`
	text := func(policy, name, call string) string {
		return strings.NewReplacer("NAME", name, "CALL", call).Replace(policy)
	}
	serving, err := servedOf(t).Serve(t.Context(), remaining(t,
		text(validating, "right", "resource.Get"), text(validating, "wrong", "resource.fetch"),
		text(rule, "right-rule", "bool"), text(rule, "wrong-rule", "has"),
	))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, p := range serving.Problems {
		said[p.Source.Name] += p.Message
	}
	if said["right"] != "" || said["right-rule"] != "" && !strings.Contains(said["right-rule"], "serves no kind") {
		t.Errorf("of what compiles: %q", said)
	}
	if !strings.Contains(said["wrong"], "variable limits") || !strings.Contains(said["wrong-rule"], "labelled") {
		t.Errorf("of what does not: %q", said)
	}
}
