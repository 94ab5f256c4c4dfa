package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

const plain = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"plain","namespace":"prod"}}`

const ownerRequired = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  validationFailureAction: Enforce
  failurePolicy: MODE
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: A ConfigMap names its owner.
      pattern: {metadata: {annotations: {acme.io/owner: "?*"}}}
`

const asksForConfigMap = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: asks}
spec:
  validationFailureAction: Enforce
  rules:
  - name: asks
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [{name: settings, configMap: {name: settings, namespace: kvap}}]
    validate:
      message: "{{ settings.data.why }}"
      deny: {conditions: {all: [{key: "{{ settings.data.closed }}", operator: Equals, value: "yes"}]}}
`

// A slowWorld says that it was asked for a ConfigMap, and answers when it may.
type slowWorld struct {
	interp.Offline
	begun, goOn chan struct{}
}

func (w *slowWorld) ConfigMap(context.Context, string, string) (map[string]any, error) {
	close(w.begun)
	<-w.goOn
	return map[string]any{"data": map[string]any{"closed": "no"}}, nil
}

func enforced(text string) string { return strings.ReplaceAll(text, "MODE", "Fail") }

func TestDenialNamesPolicyAndRule(t *testing.T) {
	c := start(t, Options{})
	c.Set(set(policies(t, enforced(ownerRequired))))
	got := c.ask(t, "/validate/fail", plain)
	want := "\n\nresource ConfigMap/prod/plain was blocked due to the following policies \n\n" +
		"owners:\n  owner: 'validation error: A ConfigMap names its owner. rule owner failed at path\n    /metadata/annotations/'\n"
	if got.Allowed || got.Result == nil || got.Result.Message != want || got.Result.Code != 400 {
		t.Errorf("got %+v, want the message %q", got.Result, want)
	}
	if got.Warnings != nil {
		t.Errorf("a denial warns: %v", got.Warnings)
	}
	var log []violation
	if err := json.Unmarshal([]byte(got.AuditAnnotations["violations"]), &log); err != nil || len(log) != 1 || log[0].Rule != "owner" {
		t.Errorf("audit annotations %v: %v", got.AuditAnnotations, err)
	}
	if len(c.records) != 1 || !c.records[0].Blocked || c.records[0].Request.Resource != "ConfigMap/prod/plain" {
		t.Errorf("recorded: %+v", c.records)
	}
	owned := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"mine","namespace":"prod","annotations":{"acme.io/owner":"me"}}}`
	if got := c.ask(t, "/validate/fail", owned); !got.Allowed || got.AuditAnnotations != nil {
		t.Errorf("one with an owner: %+v", got)
	}
}

// The pod-controller form of a rule denies under its own name.
func TestPodControllers(t *testing.T) {
	c := start(t, Options{})
	c.Set(set(policies(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: teams}
spec:
  validationFailureAction: Enforce
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
`)))
	deployment := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"prod"},"spec":{"template":{"metadata":{"labels":{}}}}}`
	got := c.ask(t, "/validate/fail", deployment)
	if got.Allowed || !strings.Contains(got.Result.Message, "teams:\n  autogen-team: 'validation error: no team") {
		t.Errorf("got %+v", got.Result)
	}
}

// What an error does depends on the action and the failure policy.
func TestActionsAndFailurePolicies(t *testing.T) {
	const erring = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: errs}
spec:
  validationFailureAction: ACTION
  failurePolicy: MODE
  emitWarning: WARN
  rules:
  - name: errs
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: errs
      deny: {conditions: {all: [{key: "{{ request.object.nowhere }}", operator: Equals, value: x}]}}
`
	failing := strings.ReplaceAll(strings.ReplaceAll(ownerRequired, "Action: Enforce", "Action: ACTION"), "  rules:", "  emitWarning: WARN\n  rules:")
	for _, test := range []struct {
		policy, action, mode, warn string
		allowed, warned            bool
	}{
		{failing, "Enforce", "Fail", "false", false, false},
		{failing, "Enforce", "Ignore", "false", false, false},
		{failing, "Audit", "Fail", "false", true, false},
		{failing, "Audit", "Fail", "true", true, true},
		{erring, "Enforce", "Fail", "false", false, false},
		{erring, "Enforce", "Ignore", "false", true, true},
		{erring, "Audit", "Fail", "false", true, false},
		{erring, "Audit", "Fail", "true", true, true},
	} {
		text := strings.NewReplacer("ACTION", test.action, "MODE", test.mode, "WARN", test.warn).Replace(test.policy)
		c := start(t, Options{})
		c.Set(set(policies(t, text)))
		got := c.ask(t, "/validate/"+strings.ToLower(test.mode), plain)
		if got.Allowed != test.allowed || (got.Warnings != nil) != test.warned {
			t.Errorf("%s/%s/%s: allowed %v, warnings %q", test.action, test.mode, test.warn, got.Allowed, got.Warnings)
		}
		if got.AuditAnnotations["violations"] == "" {
			t.Errorf("%s/%s/%s: nothing in the audit log", test.action, test.mode, test.warn)
		}
		for _, w := range got.Warnings {
			if !strings.HasPrefix(w, "policy owners.owner: ") && !strings.HasPrefix(w, "policy errs.errs: ") {
				t.Errorf("warning %q", w)
			}
		}
	}
}

// Shadow mode admits and says nothing to the user, and records all the same.
func TestShadow(t *testing.T) {
	c := start(t, Options{})
	c.Set(PolicySet{Policies: []Policy{{Policy: policies(t, enforced(ownerRequired))[0], Shadow: true}}})
	got := c.ask(t, "/validate/fail", plain)
	if !got.Allowed || got.Warnings != nil || !strings.Contains(got.AuditAnnotations["violations"], `"shadow":true`) {
		t.Errorf("got %+v", got)
	}
	if len(c.records) != 1 || !c.records[0].Shadow || c.records[0].Blocked {
		t.Errorf("recorded: %+v", c.records)
	}
}

// What a policy in shadow is asked about is recorded where it finds nothing too, and
// what it would change or start: nothing of that happens. A rule that changes again
// what it has changed is told of.
func TestShadowRecordsAll(t *testing.T) {
	c := start(t, Options{Start: func(context.Context, Start) error { t.Error("work was begun"); return nil }})
	var in PolicySet
	for _, p := range policies(t, enforced(ownerRequired)+`---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: label}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(seen): "yes"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: make}
spec:
  rules:
  - name: make
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate: {apiVersion: v1, kind: Secret, name: made, namespace: prod, data: {type: Opaque}}
`) {
		in.Policies = append(in.Policies, Policy{Policy: p, Shadow: true})
	}
	in.Policies = append(in.Policies, Policy{Shadow: true, Policy: policies(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: numbers}
spec:
  rules:
  - name: number
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {seen: "{{ request.object.metadata.labels.seen || '' }}x"}}}}
`)[0]})
	c.Set(in)
	owned := strings.Replace(plain, `"name":"plain"`, `"uid":"u","name":"plain","annotations":{"acme.io/owner":"a"}`, 1)
	c.ask(t, "/validate/fail", owned)
	if got := c.ask(t, "/mutate/fail", owned); got.Patch != nil || !got.Allowed {
		t.Errorf("%+v", got)
	}
	var got []string
	for _, r := range c.records {
		if !r.Shadow || r.Of == nil || r.Request.Object != "u" {
			t.Errorf("recorded: %+v", r)
		}
		got = append(got, r.Policy+" "+string(r.Status))
	}
	if want := []string{"owners pass", "make pass", "label pass", "numbers fail"}; !slices.Equal(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
}

func TestOverrides(t *testing.T) {
	text := strings.ReplaceAll(enforced(ownerRequired), "  rules:", `  validationFailureActionOverrides:
  - {action: Audit, namespaces: ["dev-*"], namespaceSelector: {matchLabels: {stage: early}}}
  - {action: Audit, namespaces: [lab]}
  rules:`)
	world := &interp.Offline{Objects: []map[string]any{
		namespace("dev-a", "early"), namespace("dev-b", "late"), namespace("prod", "early"),
	}}
	c := start(t, Options{World: world})
	c.Set(set(policies(t, text)))
	for name, allowed := range map[string]bool{"dev-a": true, "dev-b": false, "prod": false, "lab": true} {
		if got := c.ask(t, "/validate/fail", strings.ReplaceAll(plain, "prod", name)); got.Allowed != allowed {
			t.Errorf("in %s: allowed %v", name, got.Allowed)
		}
	}
}

func namespace(name, stage string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]any{"stage": stage},
	}}
}

func TestExceptions(t *testing.T) {
	f, ds := policy.Parse("exception.yaml", []byte(enforced(ownerRequired)+`---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: lab, namespace: lab}
spec:
  exceptions: [{policyName: owners, ruleNames: [owner]}]
  match: {any: [{resources: {kinds: [ConfigMap], namespaces: [lab]}}]}
`))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	c := start(t, Options{})
	c.Set(PolicySet{Policies: set(f.Policies).Policies, Exceptions: f.Exceptions})
	if !c.ask(t, "/validate/fail", strings.ReplaceAll(plain, "prod", "lab")).Allowed {
		t.Error("denied in spite of the exception")
	}
	if c.ask(t, "/validate/fail", plain).Allowed {
		t.Error("admitted where there is no exception")
	}
	c.Set(set(f.Policies))
	if c.ask(t, "/validate/fail", strings.ReplaceAll(plain, "prod", "lab")).Allowed {
		t.Error("admitted when the exception is gone")
	}
}

func TestExcludedGroups(t *testing.T) {
	c := start(t, Options{ExcludeGroups: []string{"system:nodes"}})
	c.Set(set(policies(t, enforced(ownerRequired))))
	if !c.ask(t, "/validate/fail", plain, `{"userInfo":{"username":"system:node:a","groups":["system:nodes"]}}`).Allowed {
		t.Error("a node is denied")
	}
	if c.ask(t, "/validate/fail", plain).Allowed {
		t.Error("another user is admitted")
	}
}

func TestRoles(t *testing.T) {
	text := strings.ReplaceAll(enforced(ownerRequired), "match: {any: [{resources: {kinds: [ConfigMap]}}]}",
		"match: {any: [{resources: {kinds: [ConfigMap]}}]}\n    exclude: {any: [{clusterRoles: [cluster-admin]}]}")
	text = strings.ReplaceAll(text, "  rules:", "  background: false\n  rules:")
	c := start(t, Options{Roles: func(_ context.Context, u User, _ string) (roles, clusterRoles []string, err error) {
		if slices.Contains(u.Groups, "admins") {
			clusterRoles = []string{"cluster-admin"}
		}
		return nil, clusterRoles, nil
	}})
	c.Set(set(policies(t, text)))
	if c.ask(t, "/validate/fail", plain).Allowed {
		t.Error("a user without the role is admitted")
	}
	if !c.ask(t, "/validate/fail", plain, `{"userInfo":{"username":"root","groups":["admins"]}}`).Allowed {
		t.Error("a user with the role is denied")
	}
}

// Policies of one name that are not the same are both named.
func TestPoliciesOfOneName(t *testing.T) {
	local := strings.NewReplacer("ClusterPolicy", "Policy", "{name: owners}", "{name: owners, namespace: prod}").Replace(enforced(ownerRequired))
	c := start(t, Options{})
	list := set(policies(t, enforced(ownerRequired)+"---"+local))
	c.Set(list)
	var found []ruleFailure
	for _, p := range list.Policies {
		found = append(found, ruleFailure{servedPolicy: c.current.Load().policies[p.Policy], rule: "owner", message: "no", action: policy.Enforce})
	}
	got := byPolicy(found)
	if got["owners"] == nil || got["prod/owners"] == nil {
		t.Errorf("got %v", got)
	}
}

// A Namespace is in no namespace: overrides for some are not for it, and its labels
// are not asked for, which nobody has before it is made.
func TestOverridesAndNamespaces(t *testing.T) {
	text := strings.ReplaceAll(strings.ReplaceAll(enforced(ownerRequired), "[ConfigMap]", "[Namespace]"), "  rules:", `  validationFailureActionOverrides:
  - {action: Audit, namespaces: ["dev-*"]}
  - {action: Audit, namespaceSelector: {matchLabels: {stage: early}}}
  rules:`)
	c := start(t, Options{World: &interp.Offline{}})
	c.Set(set(policies(t, text)))
	object := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"dev-a","labels":{"stage":"early"}}}`
	got := c.ask(t, "/validate/fail", object, `{"namespace":"dev-a"}`)
	if got.Allowed || !strings.Contains(got.Result.Message, "names its owner") {
		t.Errorf("%+v", got)
	}
}
