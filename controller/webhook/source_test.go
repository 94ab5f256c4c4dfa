package webhook

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvap/kvap/controller/webhook/registration"
)

// from is a client at another address of the machine, as another Pod has one.
func (c *client) from(t *testing.T, address string) *net.Dialer {
	t.Helper()
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
}

// Whoever asks much from one address, however slow the answers are, leaves turns and memory to an
// API server, which has another one.
func TestReviewsOfOneAddress(t *testing.T) {
	world := &waitingWorld{goOn: make(chan struct{})}
	c := start(t, Options{World: world})
	list := policies(t, enforced(ownerRequired)+`---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: waits}
spec:
  validationFailureAction: Enforce
  rules:
  - name: waits
    match: {any: [{resources: {kinds: [ConfigMap, Secret, Service], namespaces: [slow]}}]}
    context: [{name: settings, configMap: {name: settings, namespace: slow}}]
    validate: {deny: {conditions: {all: [{key: "{{ settings.data.x || 'y' }}", operator: Equals, value: x}]}}}
`)
	c.Set(set(list))
	path := registration.RouteOf(list[1], registration.Validate).Path()
	other := &http.Client{Transport: &http.Transport{
		TLSClientConfig: c.http.Transport.(*http.Transport).TLSClientConfig, DialContext: c.from(t, "127.0.0.2").DialContext, MaxConnsPerHost: 300,
	}}
	var asked sync.WaitGroup
	for i := range 300 {
		kind := []string{"ConfigMap", "Secret", "Service"}[i%3]
		body := strings.ReplaceAll(creation(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"small","namespace":"slow"},"data":{"x":"`+strings.Repeat("x", 60_000)+`"}}`), "ConfigMap", kind)
		asked.Go(func() { sends(other, c.url+path+"?timeout=30s", body) })
	}
	for world.asked.Load() < maxJudged/2 {
		time.Sleep(time.Millisecond)
	}
	until := time.Now().Add(2 * time.Second)
	elsewhere(t, c, func() bool { return time.Now().Before(until) })
	close(world.goOn)
	asked.Wait()
}

// Bodies of one address that come as slowly as they may leave memory to those of another one.
func TestSlowBodiesOfOneAddress(t *testing.T) {
	c := start(t, Options{})
	c.Set(set(policies(t, enforced(ownerRequired))))
	var sent sync.WaitGroup
	ended := make(chan struct{})
	for range 60 {
		conn, err := tls.DialWithDialer(c.from(t, "127.0.0.2"), "tcp", strings.TrimPrefix(c.url, "https://"), c.http.Transport.(*http.Transport).TLSClientConfig.Clone())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "POST /validate/fail?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", 8<<20)
		sent.Go(func() {
			chunk := []byte(strings.Repeat("x", 600<<10))
			for range 12 {
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // it waits as the server does
				if _, err := conn.Write(chunk); err != nil {
					return
				}
				select {
				case <-ended:
					return
				case <-time.After(time.Second):
				}
			}
		})
	}
	time.Sleep(2 * time.Second) // their memory fills
	for range 3 {
		if status, text, took := sends(c.http, c.url+"/validate/fail?timeout=10s", large(t, 1e6)); status != http.StatusOK || took > 3*time.Second {
			t.Errorf("a large one of another address after %v: %d %.200s", took, status, text)
		}
	}
	close(ended)
	sent.Wait()
}
