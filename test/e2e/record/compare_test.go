//go:build e2e

package record

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/webhook/certs"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// kyverno refuses ConfigMaps and Secrets without a team as Kyverno would by the policy
// teams, until the test ends.
func (c *cluster) kyverno(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	authority := certs.NewAuthority(certs.Options{Store: &certs.Memory{}, Names: certs.Names{IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}})
	if err := authority.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(refuse), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: authority.Certificate},
	}
	go func() { _ = server.ServeTLS(l, "", "") }() // it is closed in the end
	t.Cleanup(func() { server.Close() })
	url := "https://" + l.Addr().String() + "/validate/fail"
	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNoneOnDryRun
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "kyverno-resource-validating-webhook-cfg"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.kyverno.svc-fail", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: authority.Bundle()},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "default"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps", "secrets"}},
			}},
		}},
	}
	if err := c.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), configuration); err != nil {
			t.Error(err)
		}
	})
}

func refuse(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var o metav1.PartialObjectMetadata
	_ = json.Unmarshal(review.Request.Object.Raw, &o)
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: o.Labels["team"] != ""}
	if !review.Response.Allowed {
		review.Response.Result = &metav1.Status{Code: 400, Message: fmt.Sprintf(
			"\n\nresource %s/%s/%s was blocked due to the following policies \n\nteams:\n  team: 'validation error: it names its team'\n",
			review.Request.Kind.Kind, review.Request.Namespace, review.Request.Name)}
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// native are the objects of the policy, in shadow mode; broken, with what is empty taken
// for there.
func (c *cluster) native(t *testing.T, broken bool) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "teams.yaml")
	if err := os.WriteFile(file, []byte(teams), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(c.Kvap, "convert", file, "--guard", "never", "-q").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := replaced(t, string(out), "[Deny]", "[Audit]")
	if broken {
		text = replaced(t, text, "orValue('') != ''", "orValue('') == ''")
	}
	return text
}

// replaced is the text with the new for the old, which must be in it.
func replaced(t *testing.T, text, old, by string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("no %q in\n%s", old, text)
	}
	return strings.ReplaceAll(text, old, by)
}

func aConfigMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}}
}

// send has both sides judge a good and a bad request, and tells whether the log says
// that the native policy heard of one since from.
func (c *cluster) send(t *testing.T, from int64) bool {
	t.Helper()
	if err := c.Create(t.Context(), aConfigMap("good", map[string]string{"team": "a"}), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), aConfigMap("bad", nil), client.DryRunAll); err == nil {
		t.Fatal("a bad request was admitted")
	}
	data, err := os.ReadFile(c.Plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data[from:], []byte("validation.policy.admission.k8s.io/validation_failure"))
}

func (c *cluster) logged(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(c.Plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// reported is a PolicyReport as Kyverno writes it.
func reported(name, result string) string {
	return fmt.Sprintf(`apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata: {name: %s, namespace: default, labels: {app.kubernetes.io/managed-by: kyverno}}
scope: {apiVersion: v1, kind: ConfigMap, namespace: default, name: %[1]s}
results:
- {source: kyverno, policy: teams, rule: team, result: %s, message: it names its team, timestamp: {seconds: %d, nanos: 0}}`,
		name, result, time.Now().Add(time.Minute).Unix())
}

// compared is what compare says of the one rule.
type compared struct {
	Rules []struct {
		Evidence []struct {
			Source          string
			Seen, Disagreed int
		}
		Disagreements []struct{ Source, Subject string }
	}
}

func (c *cluster) compare(t *testing.T, flags ...string) (code int, out compared) {
	t.Helper()
	p := c.start(t, append([]string{"migrate", "compare", "-o", "json"}, flags...)...)
	code = p.code(t)
	if err := json.Unmarshal([]byte(p.out.String()), &out); err != nil || len(out.Rules) != 1 {
		t.Fatalf("compare ended with %d and says:\n%s%s", code, p.out.String(), p.errs.String())
	}
	return code, out
}

func (c *cluster) migration(t *testing.T) *v1alpha1.Comparison {
	t.Helper()
	o := testcluster.Read(t, "apiVersion: kvap.dev/v1alpha1\nkind: Migration\nmetadata: {name: "+
		controller.TranslationName(v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "teams"})+"}")[0]
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	data, _ := o.MarshalJSON()
	var m v1alpha1.Migration
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m.Status.Comparison
}

// TestCompare: nothing disagrees while the translation is whole, by any source that a
// cluster has; and each finds it when somebody has broken it.
func TestCompare(t *testing.T) {
	for _, o := range []*corev1.ConfigMap{aConfigMap("old-good", map[string]string{"team": "a"}), aConfigMap("old-bad", nil)} {
		if err := shared.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = shared.Delete(context.Background(), o) })
	}
	shared.Apply(t, teams+"---\n"+reported("old-good", "pass")+"\n---\n"+reported("old-bad", "fail"))
	shared.kyverno(t)
	testcluster.Soon(t, "the stand-in for Kyverno refuses", func() bool { return shared.Create(t.Context(), aConfigMap("bad", nil), client.DryRunAll) != nil })
	dir := t.TempDir()
	recorder := shared.start(t, "migrate", "record", "--output-dir", dir)
	testcluster.Soon(t, "a request is recorded", func() bool {
		shared.send(t, 0)
		names, _ := recorded(t, dir)
		return names["good"] > 0 && names["bad"] > 0
	})
	if err := recorder.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	recorder.code(t)
	for _, tt := range []struct {
		name   string
		broken bool
	}{{"whole", false}, {"broken", true}} {
		t.Run(tt.name, func(t *testing.T) {
			shared.Apply(t, shared.native(t, tt.broken))
			// No controller says that API servers judge by it, so the log counts a while after
			// it was written.
			time.Sleep(22 * time.Second)
			from := shared.logged(t)
			testcluster.Soon(t, "the native policy is heard of", func() bool { return shared.send(t, from) })
			want := 0
			if tt.broken {
				want = 1
			}
			for source, flags := range map[string][]string{
				"objects": {"--verify", "0"}, "reports": {"--verify", "0"}, "verify": {},
				"requests": {"--verify", "0", "--requests", dir}, "audit": {"--verify", "0", "--audit-log", shared.Plane.AuditLog()},
			} {
				code, got := shared.compare(t, flags...)
				seen, disagreed := 0, 0
				for _, e := range got.Rules[0].Evidence {
					if e.Source == source {
						seen, disagreed = e.Seen, e.Disagreed
					}
				}
				if code != want || seen == 0 || (disagreed > 0) != tt.broken {
					t.Errorf("%s: exit code %d, %d seen, %d disagreed; %+v", source, code, seen, disagreed, got)
				}
			}
			m := shared.migration(t)
			if m == nil || m.Clean == tt.broken || m.Digest == "" || len(m.Evidence) == 0 {
				t.Errorf("recorded: %+v", m)
			}
		})
	}
}

// TestCompareGoesOn: with --for, requests that are recorded meanwhile count.
func TestCompareGoesOn(t *testing.T) {
	shared.Apply(t, teams+"---\n"+shared.native(t, false))
	dir := t.TempDir()
	recorder := shared.start(t, "migrate", "record", "--output-dir", dir)
	shared.listening(t, dir)
	p := shared.start(t, "migrate", "compare", "--requests", dir, "--verify", "0", "--for", "10m", "--every", "1s", "-o", "json", "--dry-run")
	for i := range 20 {
		if err := shared.Create(t.Context(), aConfigMap(fmt.Sprintf("later-%d", i), map[string]string{"team": "a"}), client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	testcluster.Soon(t, "all are recorded", func() bool { names, _ := recorded(t, dir); return names["later-19"] > 0 })
	time.Sleep(3 * time.Second) // for compare to look again
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var out compared
	if err := json.Unmarshal([]byte(p.out.String()), &out); err != nil {
		t.Fatalf("%v: %s", err, p.out.String())
	}
	for _, e := range out.Rules[0].Evidence {
		if e.Source == "requests" && e.Seen >= 20 {
			_ = recorder.Process.Signal(syscall.SIGINT)
			recorder.code(t)
			return
		}
	}
	t.Errorf("the requests do not count: %s", p.out.String())
}
