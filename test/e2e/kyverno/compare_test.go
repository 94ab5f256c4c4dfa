//go:build e2e && kyverno

package kyverno

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// compared are policies on which a comparison could take for a disagreement what is none: a rule
// that reads a GlobalContextEntry, one that asks the API server, one that changes objects which
// were filled in before, and one whose webhook runs out of time by the policy slow.
func compared(service string) string {
	return `apiVersion: kyverno.io/v2beta1
kind: GlobalContextEntry
metadata: {name: teams}
spec: {apiCall: {method: GET, service: {url: ` + service + `/teams}, refreshInterval: 1h, retryLimit: 10}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: known}
spec:
  background: false
  rules:
  - name: known
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [compare], names: ["probe*"], operations: [CREATE]}}]}
    context: [{name: teams, globalReference: {name: teams}}]
    validate:
      failureAction: Enforce
      message: nobody knows the team
      deny: {conditions: {any: [{key: "{{ request.object.metadata.labels.team || 'none' }}", operator: AnyNotIn, value: "{{ teams.names }}"}]}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unique}
spec:
  background: false
  rules:
  - name: host
    match: {any: [{resources: {kinds: [Ingress], namespaces: [compare], operations: [CREATE]}}]}
    context:
    - {name: hosts, apiCall: {urlPath: /apis/networking.k8s.io/v1/namespaces/compare/ingresses, jmesPath: "items[].spec.rules[].host"}}
    validate:
      failureAction: Enforce
      message: another Ingress has the host
      deny: {conditions: {any: [{key: "{{ request.object.spec.rules[].host }}", operator: AnyIn, value: "{{ hosts }}"}]}}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: tolerant}
spec:
  autogen: {podControllers: {controllers: []}}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: compare}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        has(object.spec.tolerations)
          ? [JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: "acme.io/role", operator: "Equal", value: "web", effect: "NoSchedule"}}]
          : [JSONPatch{op: "add", path: "/spec/tolerations", value: [Object.spec.tolerations{key: "acme.io/role", operator: "Equal", value: "web", effect: "NoSchedule"}]}]
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labelled-secret}
spec:
  background: false
  failurePolicy: Ignore
  webhookTimeoutSeconds: 5
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Secret], namespaces: [compare], operations: [CREATE]}}]}
    validate: {failureAction: Enforce, message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: slow}
spec:
  background: false
  failurePolicy: Ignore
  webhookTimeoutSeconds: 5
  rules:
  - name: slow
    match: {any: [{resources: {kinds: [Secret], namespaces: [compare], operations: [CREATE], selector: {matchLabels: {slow: "yes"}}}}]}
    context: [{name: answer, apiCall: {service: {url: ` + service + `/never}}}]
    validate:
      failureAction: Enforce
      message: never
      deny: {conditions: {any: [{key: "{{ answer }}", operator: Equals, value: never}]}}`
}

// A service is what rules ask outside of the cluster.
type service struct {
	*httptest.Server
	closed sync.RWMutex // while it is held, nobody gets to know the teams
}

func newService(t *testing.T) *service {
	s, mux := &service{}, http.NewServeMux()
	mux.HandleFunc("/teams", func(w http.ResponseWriter, _ *http.Request) {
		s.closed.RLock()
		defer s.closed.RUnlock()
		_, _ = io.WriteString(w, `{"names": ["blue"]}`)
	})
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

const (
	probeConfigMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, namespace: compare}}"
	probeSecret    = "{apiVersion: v1, kind: Secret, metadata: {name: probe, namespace: compare}}"
	probePod       = "{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: compare}, spec: {containers: [{name: a, image: acme.io/a}]}}"
	tolerantPod    = "{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: compare}, spec: {containers: [{name: a, image: acme.io/a}], tolerations: [{key: acme.io/zone, operator: Exists}]}}"
)

// ingress is one with a host.
func ingress(name, host string) string {
	return fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: %s, namespace: compare}, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}, rules: [{host: %s}]}}", name, host)
}

// A comparison of both at work finds no disagreement where there is none: what a side could not
// ask, what it asked at another moment, and what it did not answer in time is no verdict.
func TestCompare(t *testing.T) {
	c, asked := shared, newService(t)
	c.Namespace(t, "compare", nil)
	c.control(t, "--apicall-services", asked.URL)
	c.Apply(t, compared(asked.URL))
	t.Cleanup(func() { // what TestWay would find
		if err := c.DeleteAllOf(context.Background(), &v1alpha1.Migration{}); err != nil {
			t.Error(err)
		}
	})
	c.Apply(t, ingress("there", "there.example"))
	tried := map[string]string{"known": probeConfigMap, "unique": ingress("probe", "there.example"), "labelled-secret": probeSecret}
	for name, text := range tried {
		testcluster.Soon(t, "Kyverno enforces "+name, func() bool { return c.deniedBy(t, text, name) })
	}
	testcluster.Soon(t, "Kyverno changes Pods", func() bool {
		o := object(t, probePod, false)
		data, err := json.Marshal(o)
		if err == nil {
			err = c.Create(t.Context(), o, client.DryRunAll)
		}
		after, _ := json.Marshal(o)
		return err == nil && len(after) > len(data) && strings.Contains(string(after), "acme.io/role")
	})
	c.migrate(t, 0, "shadow", "known", "unique", "labelled-secret")
	for _, name := range []string{"known", "unique"} {
		testcluster.Soon(t, "kvap's webhook judges by "+name, func() bool {
			return c.deniedBy(t, tried[name], name) && strings.Contains(c.auditLog(t), `\"policy\":\"`+name+`\"`)
		})
	}

	both := func(text string) {
		t.Helper()
		if err := c.judged(t.Context(), object(t, text, false)); err == nil {
			t.Errorf("a bad one is admitted: %s", text)
		}
		if err := c.judged(t.Context(), object(t, text, true)); err != nil {
			t.Errorf("a good one is refused: %v", err)
		}
	}
	t.Run("an entry is not read yet", func(t *testing.T) {
		asked.closed.Lock()
		for i, r := range c.replicas {
			_ = r.process.Process.Kill()
			_ = r.process.Wait()
			c.startController(t, i)
		}
		for _, r := range c.replicas {
			testcluster.Soon(t, "the replica waits for the entry", func() bool { return strings.Contains(readiness(r), "teams is not read yet") })
		}
		both(probeConfigMap)
		asked.closed.Unlock()
		for _, r := range c.replicas {
			testcluster.Soon(t, "the replica is ready", func() bool { return readiness(r) == "" })
		}
		both(probeConfigMap)
	})
	for i := range 10 { // both ask for the hosts, a moment after they changed
		host := fmt.Sprintf("h%d.example", i)
		first := object(t, ingress("first", host), false)
		if err := c.Create(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := c.judged(t.Context(), object(t, ingress("second", host), false)); err == nil {
			t.Error("Kyverno admits two of a host")
		}
		if err := c.Delete(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if err := c.judged(t.Context(), object(t, ingress("second", host), false)); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{probePod, tolerantPod} {
		if err := c.judged(t.Context(), object(t, text, false)); err != nil {
			t.Error(err)
		}
	}
	both(probeSecret)
	late := object(t, probeSecret, false)
	late.SetLabels(map[string]string{"slow": "yes"})
	if err := c.judged(t.Context(), late); err != nil || !strings.Contains(c.auditLog(t), `failed-open.validating.webhook.admission.k8s.io/`) {
		t.Errorf("Kyverno's webhook is to be passed over: %v", err)
	}

	for name, unclear := range map[string]string{
		"known": "could not judge a rule that asks for something else", "unique": "", "tolerant": "", "labelled-secret": "Kyverno's webhook did not answer",
	} {
		r := c.compare(t, name)
		var audit report.Evidence
		for _, e := range r.Evidence {
			if e.Source == "audit" {
				audit = e
			}
		}
		t.Logf("%s: %+v, %q", name, audit, r.Notes)
		if audit.Agreed == 0 || audit.Disagreed > 0 || !strings.Contains(strings.Join(r.Notes, "; "), unclear) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// deniedBy tells whether Kyverno denies an object by a policy.
func (c *cluster) deniedBy(t *testing.T, text, name string) bool {
	t.Helper()
	err := c.judged(t.Context(), object(t, text, false))
	return err != nil && strings.Contains(err.Error(), "kyverno.svc") && strings.Contains(err.Error(), name)
}

func (c *cluster) auditLog(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(c.Plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// readiness is why a replica is not ready; "" where it is.
func readiness(r replica) string {
	asking := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // it is on loopback
	answer, err := asking.Get("https://" + r.address + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err.Error()
	case answer.StatusCode != http.StatusOK:
		return answer.Status + ": " + string(text)
	}
	return ""
}

// compare is what the audit log and the objects say of a policy of one rule.
func (c *cluster) compare(t *testing.T, name string) report.ComparedRule {
	t.Helper()
	command := exec.Command(c.Kvap, "migrate", "compare", name, "--verify", "0", "--audit-log", c.Plane.AuditLog(), "-o", "json")
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(controlplane.Admin))
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	var found report.Comparison
	if wrong := json.Unmarshal(out, &found); wrong != nil || len(found.Rules) != 1 {
		t.Fatalf("%v, %v: %s%s", err, wrong, out, said.String())
	}
	return found.Rules[0]
}
