//go:build e2e

package webhook

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A webhook that the API server does not reach, as before its Service has an endpoint,
// is not registered: requests are admitted, and not refused for want of an answer. Once
// it is reached, it judges.
func TestRegisteredOnceReached(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.unregister(t)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front.Close() // nobody listens there yet
	p := shared.start(t, "", "--webhook-url", "https://"+front.Addr().String())
	shared.Apply(t, guarded)
	testcluster.Soon(t, "the policy says that the webhook is not reached", func() bool { return shared.says(t, "guarded", "NotReached") })
	if _, err := shared.try(t.Context(), t, unowned); err != nil {
		t.Errorf("refused before anybody answers: %v", err)
	}
	shared.configurations(t, "ValidatingWebhookConfiguration", 0)
	forward(t, front.Addr().String(), p.address, 0)
	if message := shared.denied(t, unowned); !strings.Contains(message, "no owner") {
		t.Errorf("denied with %q", message)
	}
	shared.configurations(t, "MutatingWebhookConfiguration", 0) // the probe is gone
}

// unregister removes the configurations that processes left that were killed.
func (c *cluster) unregister(t *testing.T) {
	t.Helper()
	for _, left := range []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{},
	} {
		if err := c.DeleteAllOf(t.Context(), left, client.MatchingLabels{"app.kubernetes.io/managed-by": "kvap-controller"}); err != nil {
			t.Fatal(err)
		}
	}
	c.configurations(t, "ValidatingWebhookConfiguration", 0)
}

// says tells that a policy gives a reason for not being ready.
func (c *cluster) says(t *testing.T, name, reason string) bool {
	t.Helper()
	return c.condition(t, name, "Ready")["reason"] == reason
}

// message is what a condition of a policy says.
func (c *cluster) message(t *testing.T, name, condition string) string {
	t.Helper()
	message, _ := c.condition(t, name, condition)["message"].(string)
	return message
}

// condition is one of a policy; nil where there is none.
func (c *cluster) condition(t *testing.T, name, condition string) map[string]any {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("kvap.dev/v1alpha1")
	o.SetKind("PolicyTranslation")
	if err := c.Get(t.Context(), client.ObjectKey{Name: name + ".clusterpolicies.kvap.dev"}, o); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, one := range conditions {
		if m := one.(map[string]any); m["type"] == condition {
			return m
		}
	}
	return nil
}

// configurations waits until the controller has made so many of a kind, besides the one by which
// policies are checked when they are written: that stays as long as it runs.
func (c *cluster) configurations(t *testing.T, kind string, want int) {
	t.Helper()
	testcluster.Soon(t, "the number of "+kind, func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("admissionregistration.k8s.io/v1")
		list.SetKind(kind + "List")
		if err := c.List(t.Context(), list, client.MatchingLabels{"app.kubernetes.io/managed-by": "kvap-controller"}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, o := range list.Items {
			if o.GetName() != registration.PoliciesName {
				n++
			}
		}
		return n == want
	})
}

// forward takes connections at one address to another until the test ends; what is sent
// there is late.
func forward(t *testing.T, from, to string, late time.Duration) {
	t.Helper()
	l, err := net.Listen("tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(lateWriter{out, late}, in) }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
}

// A lateWriter writes after a time.
type lateWriter struct {
	io.Writer
	late time.Duration
}

func (w lateWriter) Write(p []byte) (int, error) {
	time.Sleep(w.late)
	return w.Writer.Write(p)
}
