package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A client asks a server that runs until the test ends.
type client struct {
	*Server
	url  string
	http *http.Client
	end  func() error // ends the server and tells how that went

	mu      sync.Mutex
	records []Record
}

// start serves over TLS on loopback.
func start(t *testing.T, o Options) *client {
	t.Helper()
	c := &client{}
	if o.World == nil {
		o.World = &interp.Offline{}
	}
	if o.Drain == 0 {
		o.Drain = time.Millisecond
	}
	o.Record = func(r Record) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.records = append(c.records, r)
	}
	certificate, roots := selfSigned(t)
	o.Certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate, nil }
	c.Server = New(o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()
	c.end = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := c.end(); err != nil {
			t.Error(err)
		}
	})
	c.url = "https://" + l.Addr().String()
	c.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 100}}
	return c
}

func selfSigned(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "apiserver"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// policies reads policies that must have no errors.
func policies(t *testing.T, text string) []*policy.Policy {
	t.Helper()
	f, ds := policy.Parse("policies.yaml", []byte(text))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	return f.Policies
}

func set(list []*policy.Policy) PolicySet {
	var s PolicySet
	for _, p := range list {
		s.Policies = append(s.Policies, Policy{Policy: p})
	}
	return s
}

// post sends what need not be a review.
func (c *client) post(t *testing.T, path, body string) (status int, answer string) {
	t.Helper()
	r, err := c.http.Post(c.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(data)
}

// ask sends an object's creation, changed by what is in over.
func (c *client) ask(t *testing.T, path, object string, over ...string) *admissionv1.AdmissionResponse {
	t.Helper()
	status, text := c.post(t, path, creation(t, object, over...))
	if status != http.StatusOK {
		t.Fatalf("%s answers %d: %s", path, status, text)
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Response == nil || answer.Response.UID != "one" || answer.Kind != "AdmissionReview" || answer.APIVersion != "admission.k8s.io/v1" {
		t.Fatalf("no review that answers: %s", text)
	}
	return answer.Response
}

// creation is the review of an object's creation. Each of over is a JSON object with
// fields of the request.
func creation(t testing.TB, object string, over ...string) string {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		t.Fatal(err)
	}
	group, version, found := strings.Cut(o["apiVersion"].(string), "/")
	if !found {
		group, version = "", group
	}
	kind := o["kind"].(string)
	request := map[string]any{
		"uid": "one", "operation": "CREATE", "object": o, "userInfo": map[string]any{"username": "alice", "groups": []string{"dev"}},
		"kind":     map[string]any{"group": group, "version": version, "kind": kind},
		"resource": map[string]any{"group": group, "version": version, "resource": strings.ToLower(kind) + "s"},
	}
	meta, _ := o["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace"} {
		if meta[key] != nil {
			request[key] = meta[key]
		}
	}
	for _, more := range over {
		if err := json.Unmarshal([]byte(more), &request); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	err := json.NewEncoder(&out).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
