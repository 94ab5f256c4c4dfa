//go:build e2e

package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

const owned = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned, namespace: stream, annotations: {acme.io/owner: me}}"

// The webhook's authority is replaced every 75 seconds, and its certificate every 15,
// while requests come all the time. As long as the process lives, each gets the answer
// that the policy gives, and none is lost. Killed again and again meanwhile, it admits
// none that must be denied, and when it is back, API servers know who signed what it
// shows.
func TestRotation(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.dropSecret(t)
	t.Cleanup(func() { shared.dropSecret(t) }) // what it holds ends soon
	flags := []string{"--webhook-certs-validity", "90s"}
	p := shared.start(t, "", flags...)
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	good := shared.goodStream(t, 2)
	s := shared.stream(t, 2)

	seen := shared.serials(t)
	for range 2 {
		testcluster.Soon(t, "another authority that signs", func() bool { return shared.serials(t).signer != seen.signer })
		if now := shared.serials(t); now.serving == seen.serving {
			t.Error("another authority signs, and the certificate is the same")
		}
		seen = shared.serials(t)
	}
	if n := s.failed.Load() + good.refused.Load(); n > 0 {
		t.Errorf("%d requests were lost while certificates rotated; the last: %v", n, good.last.Load())
	}

	for range 6 {
		next := shared.serials(t).next
		testcluster.Soon(t, "a step of the rotation", func() bool {
			now := shared.serials(t)
			return now.next != next || now.serving != seen.serving
		})
		p.kill()
		p = shared.start(t, p.address, flags...)
		shared.denied(t, unowned)
		seen = shared.serials(t)
	}
	s.stop()
	good.stop()
	if n := s.admitted.Load(); n > 0 || s.sent.Load() < 200 || good.sent.Load() < 200 {
		t.Errorf("%d of %d requests were admitted; %d others", n, s.sent.Load(), good.sent.Load())
	}
	if n := good.distrusted.Load(); n > 0 {
		t.Errorf("%d times API servers did not trust the webhook; the last: %v", n, good.distrust.Load())
	}
	t.Logf("%d requests to deny and %d to admit; %d found no webhook while it was killed", s.sent.Load(), good.sent.Load(), s.failed.Load()+good.refused.Load())
}

// Whoever deletes the Secret has another authority. Until API servers know it, both replicas show
// certificates that these trust: of both every handshake succeeds, they are ready, and no request
// is lost.
func TestSecretDeleted(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.dropSecret(t)
	t.Cleanup(func() { shared.dropSecret(t) })
	var addresses []string
	for range 2 {
		address, err := testcluster.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, address)
	}
	flags := []string{"--leader-elect", "--webhook-url", "https://" + balance(t, addresses...), "--webhook-certs-validity", "90s"}
	shared.start(t, addresses[0], flags...)
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	second := shared.start(t, addresses[1], flags...)
	testcluster.Soon(t, "the second replica serves", func() bool { return second.reads(t) })
	good := shared.goodStream(t, 2)
	bad := shared.stream(t, 2)
	seen := shared.serials(t)
	shared.dropSecret(t)
	shown := 0
	testcluster.Soon(t, "another authority signs", func() bool {
		for _, address := range addresses {
			if err := shared.trusts(t, address); err != nil {
				t.Errorf("%s: %v", address, err)
			}
			shown++
		}
		secret := &corev1.Secret{}
		err := shared.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kvap-webhook-tls"}, secret)
		return err == nil && !bytes.Equal(secret.Data["signing-ca.crt"], []byte(seen.signer)) && len(secret.Data["signing-ca.crt"]) > 0
	})
	for range 20 {
		for _, address := range addresses {
			if err := shared.trusts(t, address); err != nil {
				t.Errorf("%s, after another authority signs: %v", address, err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	good.stop()
	bad.stop()
	if n := bad.failed.Load() + bad.admitted.Load() + good.refused.Load(); n > 0 {
		t.Errorf("%d requests were lost; the last: %v", n, good.last.Load())
	}
	t.Logf("%d handshakes, and %d requests", 2*shown, bad.sent.Load()+good.sent.Load())
}

// trusts tells why an API server would not trust what a replica shows, by what is registered.
func (c *cluster) trusts(t *testing.T, address string) error {
	t.Helper()
	list, err := c.ownConfigurations(t.Context())
	if err != nil {
		return err
	}
	for _, o := range list {
		for _, w := range o.Webhooks {
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(w.ClientConfig.CABundle)
			asking := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
			answer, err := asking.Get("https://" + address + "/readyz")
			if err != nil {
				return err
			}
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("it is not ready: %d", answer.StatusCode)
			}
		}
	}
	return nil
}

// The serials are what the Secret of the certificates holds.
type serials struct{ signer, next, serving string }

func (c *cluster) serials(t *testing.T) serials {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kvap-webhook-tls"}, secret); err != nil {
		t.Fatal(err)
	}
	return serials{string(secret.Data["signing-ca.crt"]), string(secret.Data["next-ca.crt"]), string(secret.Data["tls.crt"])}
}

// dropSecret has the next process begin with certificates of its own.
func (c *cluster) dropSecret(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "default", "kvap-webhook-tls"
	if err := c.Delete(context.Background(), secret); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// A goodStream sends what must be admitted, all the time, and counts what was not.
type goodStream struct {
	sent, refused, distrusted atomic.Int64
	last, distrust            atomic.Value // the text of an error
	stop                      func()
}

func (c *cluster) goodStream(t *testing.T, clients int) *goodStream {
	t.Helper()
	s := &goodStream{}
	one := func(ctx context.Context) {
		if _, err := c.try(ctx, t, owned); err != nil && ctx.Err() == nil {
			s.refused.Add(1)
			s.last.Store(err.Error())
			// One that is killed as its certificate is to be renewed shows one that has
			// ended, for a moment: that is not what may not be.
			if strings.Contains(err.Error(), "unknown authority") {
				s.distrusted.Add(1)
				s.distrust.Store(err.Error())
			}
		}
		s.sent.Add(1)
		time.Sleep(5 * time.Millisecond)
	}
	s.stop = testcluster.Repeat(t, slices.Repeat([]func(context.Context){one}, clients)...)
	return s
}
