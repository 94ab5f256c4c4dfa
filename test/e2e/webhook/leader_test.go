//go:build e2e

package webhook

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// balance hands connections on to the first of some addresses that takes them, as a
// Service does with Pods that are ready.
func balance(t *testing.T, to ...string) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	hand := func(from net.Conn) {
		defer func() { _ = from.Close() }()
		for _, one := range to {
			conn, err := net.Dial("tcp", one)
			if err != nil {
				continue
			}
			go func() {
				_, _ = io.Copy(conn, from)
				_ = conn.Close()
			}()
			_, _ = io.Copy(from, conn)
			return
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go hand(conn)
		}
	}()
	return l.Addr().String()
}

// When the leader is killed, requests are judged on by the replica that follows, before it
// is elected: none waits for that. Only those that were with the leader are refused: those
// under way, those that were put on its connections before the API server saw them closed,
// and those whose connection its closing socket had taken.
func TestNoRequestWaitsForALeader(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	var addresses []string
	for range 2 {
		address, err := testcluster.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, address)
	}
	url := "https://" + balance(t, addresses...)
	first := shared.start(t, addresses[0], "--leader-elect", "--webhook-url", url)
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	leader := testcluster.Leader(t, shared.Client)
	second := shared.start(t, addresses[1], "--leader-elect", "--webhook-url", url)
	testcluster.Soon(t, "the second replica serves", func() bool { return second.reads(t) })
	const clients = 4
	s := shared.stream(t, clients)
	judged := func() int64 { return s.sent.Load() - s.failed.Load() }
	first.kill()
	before := judged()
	testcluster.Soon(t, "requests are judged while nobody leads", func() bool { return judged() > before+100 })
	refused := s.failed.Load()
	if refused > 3*clients {
		t.Errorf("%d of %d requests found nobody who judges, of %d clients", refused, s.sent.Load(), clients)
	}
	if shared.isMade(t, "late") {
		t.Error("it makes what a request starts, and does not lead")
	}
	if now := testcluster.Leader(t, shared.Client); now != leader {
		t.Errorf("%q leads already: nothing is shown", now)
	}
	testcluster.Soon(t, "the other one leads", func() bool { return testcluster.Leader(t, shared.Client) != leader })
	s.stop()
	if n := s.admitted.Load(); n > 0 {
		t.Errorf("%d of %d requests were admitted", n, s.sent.Load())
	}
	if n := s.failed.Load() - refused; n > 0 {
		t.Errorf("%d of %d requests found nobody who judges though another one did", n, s.sent.Load())
	}
}

// Where somebody else is given the lease, who had it leads nothing any more: it writes
// nothing. It goes on to judge, by policies as they are now, refuses no request for that, and
// leads again once it may.
func TestLeaseTaken(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	metrics, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p := shared.start(t, "", "--leader-elect", "--metrics-bind-address", metrics)
	shared.Apply(t, guarded)
	shared.Apply(t, plain)
	shared.Apply(t, made)
	shared.denied(t, unowned)
	for _, name := range []string{"plain", "made"} {
		testcluster.Soon(t, name+" is ready", func() bool { return shared.condition(t, name, "Ready")["status"] == "True" })
	}
	shared.trigger(t, "early")
	testcluster.Soon(t, "what a request starts is made", func() bool { return shared.isMade(t, "early") })
	leader := testcluster.Leader(t, shared.Client)
	s := shared.stream(t, 4)

	testcluster.GiveLease(t, shared.Client, "somebody")
	testcluster.Soon(t, "the lease is lost", func() bool { return strings.Contains(p.log.String(), "the lease is lost") })
	before := written(t, metrics)
	for _, native := range shared.natives(t) {
		if err := shared.Delete(t.Context(), &native); err != nil {
			t.Fatal(err)
		}
	}
	spec := testcluster.Read(t, strings.Replace(guarded, "no owner in", "nobody owns it in", 1))[0].Object["spec"].(map[string]any)
	shared.change(t, "guarded", spec)
	testcluster.Soon(t, "requests are judged by the policy as it is now", func() bool {
		_, err := shared.try(t.Context(), t, unowned)
		return err != nil && strings.Contains(err.Error(), "nobody owns it")
	})
	shared.trigger(t, "late")
	judged := s.sent.Load()
	testcluster.Soon(t, "requests are judged on", func() bool { return s.sent.Load() > judged+100 })
	if now := written(t, metrics); !slices.Equal(now, before) {
		t.Errorf("it writes, and does not lead: %q, and before %q", now, before)
	}
	if left := shared.natives(t); len(left) > 0 {
		t.Errorf("it makes %s, and does not lead", left[0].Name)
	}
	if shared.isMade(t, "late") {
		t.Error("it makes what a request starts, and does not lead")
	}
	if now := testcluster.Leader(t, shared.Client); now != "somebody" {
		t.Errorf("%q leads: nothing is shown", now)
	}

	testcluster.GiveLease(t, shared.Client, "")
	testcluster.Soon(t, "it leads again", func() bool { return testcluster.Leader(t, shared.Client) == leader })
	testcluster.Soon(t, "what was deleted is there again", func() bool { return len(shared.natives(t)) > 0 })
	testcluster.Soon(t, "what a request started is made", func() bool { return shared.isMade(t, "late") })
	s.stop()
	if n := s.admitted.Load(); n > 0 {
		t.Errorf("%d of %d requests were admitted", n, s.sent.Load())
	}
	if n := s.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests found nobody who judges", n, s.sent.Load())
	}
}

// plain is a policy with a native form.
const plain = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: plain}
spec:
  background: false
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [ServiceAccount], namespaces: [nowhere]}}]}
    validate: {message: m, pattern: {metadata: {labels: {team: "?*"}}}}
`

// made is a policy that makes a ServiceAccount for each Secret.
const made = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: made}
spec:
  rules:
  - name: account
    match: {any: [{resources: {kinds: [Secret], operations: [CREATE], namespaces: [stream]}}]}
    generate: {apiVersion: v1, kind: ServiceAccount, name: "{{ request.object.metadata.name }}", namespace: stream, data: {}}
`

// trigger makes a Secret, as a user other than the controller's own, which starts nothing.
func (c *cluster) trigger(t *testing.T, name string) {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "alice", Groups: []string{"system:masters"}}
	alice, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := alice.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "stream", Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// isMade tells that the ServiceAccount of a Secret is there.
func (c *cluster) isMade(t *testing.T, name string) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Namespace: "stream", Name: name}, &corev1.ServiceAccount{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// natives are the native policies that kvap made of policies.
func (c *cluster) natives(t *testing.T) []admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	var list admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := c.List(t.Context(), &list, client.MatchingLabels{"app.kubernetes.io/managed-by": "kvap-controller"}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool { return p.Name == "kvap-canary" })
}

// written is how often a replica has written to the cluster, by verb.
func written(t *testing.T, metrics string) []string {
	t.Helper()
	out := samples(t, metrics, "kvap_writes_total{")
	if len(out) == 0 {
		t.Fatal("no writes are counted")
	}
	return out
}

// samples are those of a metric, as they are served at an address.
func samples(t *testing.T, metrics, name string) []string {
	t.Helper()
	answer, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Collect(strings.SplitSeq(string(text), "\n"))
	return slices.DeleteFunc(out, func(line string) bool { return !strings.HasPrefix(line, name) })
}

// reads tells that a replica has read the policies, and so judges.
func (p *process) reads(t *testing.T) bool {
	t.Helper()
	connection := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is asked only whether it is ready
	answer, err := connection.Get("https://" + p.address + "/readyz")
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
