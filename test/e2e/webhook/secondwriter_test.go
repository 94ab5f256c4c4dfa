//go:build e2e

package webhook

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// ownConfigurations are the validating configurations by which the controller has requests judged,
// without the one by which policies are checked when they are written.
func (c *cluster) ownConfigurations(ctx context.Context) ([]admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	err := c.List(ctx, &list, client.MatchingLabels{"app.kubernetes.io/managed-by": "kvap-controller"})
	return slices.DeleteFunc(list.Items, func(o admissionregistrationv1.ValidatingWebhookConfiguration) bool {
		return o.Name == registration.PoliciesName
	}), err
}

// versions are those of the configurations, and of the canary.
func (c *cluster) versions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	list, err := c.ownConfigurations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		out[o.Name] = o.ResourceVersion
	}
	canary := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "kvap-canary"}, canary); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	out["canary"] = canary.ResourceVersion
	return out
}

// Beside a writer that confines all webhooks further, as the admissions enforcer of AKS does
// where it is not told to leave them alone, the controller comes to rest, and its rules are in
// force.
func TestBesideAnotherWriter(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.unregister(t)
	shared.start(t, "")
	var edits atomic.Int64
	stop := testcluster.Repeat(t, func(ctx context.Context) {
		defer time.Sleep(20 * time.Millisecond)
		list, err := shared.ownConfigurations(ctx)
		if err != nil {
			return
		}
		for i := range list {
			changed := false
			for j := range list[i].Webhooks {
				s := list[i].Webhooks[j].NamespaceSelector
				if !slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == "control-plane" }) {
					s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: "control-plane", Operator: metav1.LabelSelectorOpDoesNotExist})
					changed = true
				}
			}
			if changed && shared.Update(ctx, &list[i]) == nil {
				edits.Add(1)
			}
		}
	})
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	testcluster.Soon(t, "the controller rests", func() bool {
		before := shared.versions(t)
		time.Sleep(3 * time.Second)
		return maps.Equal(before, shared.versions(t))
	})
	if n := edits.Load(); n == 0 || n > 10 {
		t.Errorf("the other writer had to write %d times", n)
	}
	shared.denied(t, unowned)
	stop()
}

// A configuration that has lost its label is repaired, and one that was given away is left to
// whom it was given: its rules are judged by another.
func TestGivenAway(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.unregister(t)
	shared.start(t, "")
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	names := func() (out []string) {
		list, err := shared.ownConfigurations(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			if o.Name != "kvap-webhook-probe" {
				out = append(out, o.Name)
			}
		}
		return out
	}
	first := names()[0]
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: first}}
	label := func(value string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"app.kubernetes.io/managed-by": `+value+`}}}`))
		if err := shared.Patch(t.Context(), configuration.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	label("null")
	testcluster.Soon(t, "the label is back", func() bool { return slices.Contains(names(), first) })
	label(`"Helm"`)
	testcluster.Soon(t, "another configuration", func() bool { return len(names()) > 0 && !slices.Contains(names(), first) })
	if err := shared.Delete(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	shared.denied(t, unowned)
	testcluster.Soon(t, "the first name again", func() bool { return slices.Equal(names(), []string{first}) })
	shared.denied(t, unowned)
}

// sample is the value of a metric without labels.
func sample(t *testing.T, metrics, name string) string {
	t.Helper()
	for _, line := range samples(t, metrics, name+" ") {
		return strings.TrimPrefix(line, name+" ")
	}
	return ""
}

// Beside a writer that puts an authority of its own into each configuration the controller writes
// less and less often, and says so; once it is alone again it corrects what is left, and rests.
func TestAgainstAnotherAuthority(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.unregister(t)
	metrics, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	shared.start(t, "", "--metrics-bind-address", metrics)
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	testcluster.Soon(t, "the policy is ready", func() bool { return shared.condition(t, "guarded", "Ready")["status"] == "True" })
	other, _, err := certutil.GenerateSelfSignedCertKey("other", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var edits atomic.Int64
	stop := testcluster.Repeat(t, func(ctx context.Context) {
		defer time.Sleep(20 * time.Millisecond)
		if shared.inject(ctx, other) {
			edits.Add(1)
		}
	})
	testcluster.Soon(t, "the controller says so", func() bool { return shared.says(t, "guarded", "Contested") })
	if got := sample(t, metrics, "kvap_contested_objects"); got != "1" {
		t.Errorf("%s objects are contested", got)
	}
	time.Sleep(10 * time.Second) // of which a correction may come after five, and one after ten
	stop()
	if n := edits.Load(); n < 2 || n > 6 {
		t.Errorf("the other writer had to write %d times", n)
	}
	shared.denied(t, unowned)
	testcluster.Soon(t, "the policy is ready again", func() bool { return shared.condition(t, "guarded", "Ready")["status"] == "True" })
	before, written := shared.versions(t), samples(t, metrics, "kvap_writes_total{")
	time.Sleep(3 * time.Second)
	if after := shared.versions(t); !maps.Equal(before, after) || !slices.Equal(written, samples(t, metrics, "kvap_writes_total{")) {
		t.Errorf("at rest: %v, and then %v", before, after)
	}
}

// inject writes an authority into the entries of the controller's configurations that have
// another one, and tells whether there were such.
func (c *cluster) inject(ctx context.Context, authority []byte) (wrote bool) {
	write := func(o client.Object, entries ...*admissionregistrationv1.WebhookClientConfig) {
		changed := false
		for _, e := range entries {
			changed = changed || !bytes.Equal(e.CABundle, authority)
			e.CABundle = authority
		}
		if changed && c.Update(ctx, o) == nil {
			wrote = true
		}
	}
	validating, _ := c.ownConfigurations(ctx)
	for _, o := range validating {
		var entries []*admissionregistrationv1.WebhookClientConfig
		for i := range o.Webhooks {
			entries = append(entries, &o.Webhooks[i].ClientConfig)
		}
		write(&o, entries...)
	}
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList // of which the probe is one
	_ = c.List(ctx, &mutating, client.MatchingLabels{"app.kubernetes.io/managed-by": "kvap-controller"})
	for _, o := range mutating.Items {
		var entries []*admissionregistrationv1.WebhookClientConfig
		for i := range o.Webhooks {
			entries = append(entries, &o.Webhooks[i].ClientConfig)
		}
		write(&o, entries...)
	}
	return wrote
}

// Where the certificates are somebody else's, who puts their authority into the configurations too,
// it stays there: each change is written once, and at rest nothing is.
func TestInjectedAuthority(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.unregister(t)
	dir := t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.ParseIP("127.0.0.1")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	metrics, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	shared.start(t, "", "--webhook-certs", dir, "--metrics-bind-address", metrics)
	testcluster.Repeat(t, func(ctx context.Context) {
		defer time.Sleep(20 * time.Millisecond)
		shared.inject(ctx, certificate)
	})
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	testcluster.Soon(t, "the policy is ready", func() bool { return shared.condition(t, "guarded", "Ready")["status"] == "True" })
	if got := sample(t, metrics, "kvap_drift_corrections_total"); got != "0" {
		t.Errorf("%s corrections", got)
	}
	before, written := shared.versions(t), samples(t, metrics, "kvap_writes_total{")
	time.Sleep(3 * time.Second)
	if after := shared.versions(t); !maps.Equal(before, after) || !slices.Equal(written, samples(t, metrics, "kvap_writes_total{")) {
		t.Errorf("at rest: %v, and then %v", before, after)
	}
}

// A second instance, of another namespace, is not ready, says so in a metric, in its log, in an event
// of its namespace and to kvap status, and writes nothing.
func TestSecondInstance(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.start(t, "")
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	testcluster.Soon(t, "the policy is ready", func() bool { return shared.condition(t, "guarded", "Ready")["status"] == "True" })
	var addresses []string
	for range 2 {
		address, err := testcluster.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, address)
	}
	second := shared.start(t, "", "--namespace", "kube-system", "--metrics-bind-address", addresses[0], "--health-probe-bind-address", addresses[1])
	testcluster.Soon(t, "the second stands by", func() bool { return strings.Contains(second.log.String(), "stands by and writes nothing") })
	if got := sample(t, addresses[0], "kvap_standing_by"); got != "1" {
		t.Errorf("kvap_standing_by is %q", got)
	}
	if answer, err := http.Get("http://" + addresses[1] + "/readyz"); err != nil || answer.StatusCode == http.StatusOK {
		t.Errorf("it is ready: %v", err)
	}
	testcluster.Soon(t, "an event tells of it", func() bool {
		var list eventsv1.EventList
		if err := shared.List(t.Context(), &list, client.InNamespace("kube-system")); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "StandingBy" && e.Type == "Warning" && strings.Contains(e.Note, "the one of the namespace default")
		})
	})
	told, err := exec.Command(shared.Kvap, "status", "--kubeconfig", shared.Plane.Kubeconfig(controlplane.Admin)).CombinedOutput()
	if want := "the namespace kube-system stands by"; !strings.Contains(string(told), want) {
		t.Errorf("kvap status lacks %q: %v\n%s", want, err, told)
	}
	before := shared.versions(t)
	time.Sleep(4 * time.Second)
	if after := shared.versions(t); !maps.Equal(before, after) {
		t.Errorf("somebody writes: %v, and then %v", before, after)
	}
	if written := samples(t, addresses[0], "kvap_writes_total{"); len(written) > 0 {
		t.Errorf("the second has written: %v", written)
	}
	shared.denied(t, unowned)
}
