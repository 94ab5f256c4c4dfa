package images

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kvap/kvap/test/testregistry"
)

const fuzzed = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// nobody is a verifier of an attestor who has signed nothing.
func nobody(f *testing.F, a Attestor) *Verifier {
	f.Helper()
	trust, err := PublicTrust()
	if err != nil {
		f.Fatal(err)
	}
	v, err := NewVerifier(a, trust, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	return v
}

func fuzzedImage(f *testing.F, host string) Image {
	f.Helper()
	image, err := Pinned(host + "/app@" + fuzzed)
	if err != nil {
		f.Fatal(err)
	}
	return image
}

// FuzzAnnotations: what stands beside a signature is anybody's.
func FuzzAnnotations(f *testing.F) {
	root, k := testregistry.NewAuthority(f, nil, time.Hour), testregistry.NewSigner(f)
	layer1 := root.Certified("reg.test/app@" + fuzzed)
	logged := k.Logged(layer1, testregistry.EntryOf(layer1, root.Certificate()), time.Now())
	f.Add(layer1.Data, layer1.Annotations[testregistry.SignatureKey], root.Certificate(), root.Certificate(), logged.Annotations[testregistry.BundleKey], `{"SignedRFC3161Timestamp":"MAA="}`)
	f.Add([]byte("{}"), "eA==", "x", "", "{}", "{}")
	verifiers := []*Verifier{
		nobody(f, Attestor{Key: testregistry.NewSigner(f).PEM()}), nobody(f, Attestor{Keyless: &Keyless{Issuer: "a", Subject: "b"}}),
		nobody(f, Attestor{Chain: testregistry.NewAuthority(f, nil, time.Hour).Certificate(), IgnoreLog: true, LoggedCertificates: true}),
		nobody(f, Attestor{Keyless: &Keyless{Issuer: "a", Subject: "b", IgnoreSCT: true}, IgnoreLog: true, Stamps: testregistry.NewRoot(f).Certificate()}),
	}
	image := fuzzedImage(f, "reg.test")
	f.Fuzz(func(t *testing.T, data []byte, signature, certificate, chain, bundle, stamp string) {
		l := layer{of: static.NewLayer(data, types.OCILayer), annotations: map[string]string{
			signatureKey: signature, certificateKey: certificate, chainKey: chain, bundleKey: bundle, stampKey: stamp,
		}}
		for _, v := range verifiers {
			if v.signature(l, image) == nil {
				t.Fatal("it is a signature")
			}
			if _, err := v.statement(l, image, "t"); err == nil {
				t.Fatal("it is an attestation")
			}
		}
	})
}

// FuzzEnvelope: an envelope that counts has the payload that was signed.
func FuzzEnvelope(f *testing.F) {
	k := testregistry.NewSigner(f)
	image := fuzzedImage(f, "reg.test")
	signed := k.Attestation(image.String(), "slsa", `{"a": 1}`)
	v := nobody(f, Attestor{Key: k.PEM(), IgnoreLog: true})
	read := func(data []byte) (Statement, error) {
		return v.statement(layer{of: static.NewLayer(data, types.OCILayer), annotations: signed.Annotations}, image, "slsa")
	}
	want, err := read(signed.Data)
	if err != nil {
		f.Fatal(err)
	}
	other := testregistry.NewSigner(f).Attestation(image.String(), "slsa", `{"a": 2}`)
	for _, seed := range [][]byte{signed.Data, other.Data, bytes.Replace(signed.Data, []byte(`"sig":`), []byte(`"sig":"eA==","sig":`), 1), []byte("{}"), []byte("null")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := read(data)
		if err == nil && (got.Type != want.Type || !reflect.DeepEqual(got.Content, want.Content)) {
			t.Fatalf("it says %v", got.Content)
		}
	})
}

// FuzzManifest: whatever a registry answers, nothing is proven by it.
func FuzzManifest(f *testing.F) {
	f.Add("application/vnd.oci.image.manifest.v1+json", []byte(`{"schemaVersion":2,"config":{"digest":"`+fuzzed+`"},"layers":[{"digest":"`+fuzzed+`","size":2,"annotations":{"dev.cosignproject.cosign/signature":"eA=="}}]}`), []byte("{}"))
	f.Add("application/vnd.oci.image.index.v1+json", []byte(`{"schemaVersion":2,"manifests":[{"artifactType":"`+bundleMedia+`","digest":"`+fuzzed+`","size":2},{"artifactType":"`+notationMedia+`","digest":"`+fuzzed+`","size":2}]}`), []byte("{}"))
	type answer struct {
		media          string
		manifest, blob []byte
	}
	var now atomic.Pointer[answer]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		a := now.Load()
		switch {
		case q.URL.Path == "/v2/":
		case strings.Contains(q.URL.Path, "/blobs/"):
			_, _ = w.Write(a.blob)
		default:
			w.Header().Set("Content-Type", a.media)
			_, _ = w.Write(a.manifest)
		}
	}))
	f.Cleanup(server.Close)
	image := fuzzedImage(f, strings.TrimPrefix(server.URL, "http://"))
	key := testregistry.NewSigner(f).PEM()
	verifiers := []*Verifier{
		nobody(f, Attestor{Key: key, IgnoreLog: true}), nobody(f, Attestor{Key: key, IgnoreLog: true, Format: Bundles}),
		nobody(f, Attestor{Chain: testregistry.NewRoot(f).Certificate(), IgnoreLog: true, Format: Notation}),
	}
	f.Fuzz(func(t *testing.T, media string, manifest, blob []byte) {
		now.Store(&answer{strings.Map(printable, media), manifest, blob})
		for _, v := range verifiers {
			if v.Signed(t.Context(), local(), image) == nil {
				t.Fatal("it is signed")
			}
			if _, err := v.Attested(t.Context(), local(), image, "t"); err == nil {
				t.Fatal("it is attested")
			}
		}
	})
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// challenging answers everybody that they need a token, and notes what they ask for without one.
type challenging struct {
	challenge string
	wrong     string
}

// RoundTrip implements http.RoundTripper.
func (c *challenging) RoundTrip(q *http.Request) (*http.Response, error) {
	if at, err := netip.ParseAddr(q.URL.Hostname()); q.URL.Scheme != "https" || err == nil && (at.Unmap().IsLoopback() || at.Unmap().IsLinkLocalUnicast() || at.IsUnspecified()) {
		c.wrong = q.URL.String()
	}
	header := http.Header{}
	if c.challenge != "" {
		header.Set("WWW-Authenticate", c.challenge)
	}
	return &http.Response{StatusCode: http.StatusUnauthorized, Header: header, Body: http.NoBody, Request: q, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}

// FuzzChallenge: a registry that asks for a token sends nobody where there is no TLS, nor to
// addresses of this machine or its link.
func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{
		`Bearer realm="http://169.254.169.254/latest",service="x"`, `Bearer realm="https://127.0.0.1:6443/token",service="x",scope="y"`, `Basic realm="x"`, `Bearer realm=`, `Bearer`, ``, `Bearer realm="http://[::1]/"`,
		`Bearer realm="https://[::ffff:127.0.0.1]/"`, `Bearer realm="https://auth.test/token"`,
	} {
		f.Add(seed)
	}
	ref, err := name.ParseReference("reg.test/app:v1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, challenge string) {
		c := &challenging{challenge: strings.Map(printable, challenge)}
		_, err := remote.Head(ref, remote.WithContext(t.Context()), remote.WithTransport(confined{c, Registry{}}), remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
			remote.WithAuth(&authn.Basic{Username: "ann", Password: "secret"}))
		if err == nil {
			t.Fatal("there is an image")
		}
		if c.wrong != "" {
			t.Fatalf("%s was asked", c.wrong)
		}
	})
}

// FuzzEntry: a public log takes entries in of anybody. One that names another payload, signature or key proves
// nothing of this one, whatever its form.
func FuzzEntry(f *testing.F) {
	k, eve := testregistry.NewSigner(f), testregistry.NewSigner(f)
	image := fuzzedImage(f, "reg.test")
	signed, attested := k.Signature(image.String(), nil), k.Attestation(image.String(), "t", `{}`)
	attested.Annotations = map[string]string{}
	other := eve.Attestation(image.String(), "t", `{}`)
	for _, body := range []string{
		testregistry.EntryOf(signed, eve.PEM()), testregistry.EntryOfEnvelope(other.Data, eve.PEM()), testregistry.Record(other.Data, nil, eve), testregistry.RecordOfEnvelope(other.Data, nil, eve),
		`{"apiVersion":"0.0.1","kind":"intoto","spec":{"content":{"hash":{"algorithm":"sha256","value":"00"}},"publicKey":"eA=="}}`,
		`{"apiVersion":"0.0.2","kind":"intoto","spec":{"content":{"envelope":{"payloadType":"t","signatures":[{"sig":"eA==","publicKey":"eA=="},null]},"hash":{"algorithm":"sha256","value":"00"},"payloadHash":{"algorithm":"sha256","value":"00"}}}}`,
		`{"apiVersion":"0.0.1","kind":"dsse","spec":{"proposedContent":{"envelope":"{}","verifiers":["eA=="]}}}`,
		`{"apiVersion":"0.0.1","kind":"dsse","spec":{"envelopeHash":{"algorithm":"sha256","value":"0000000000000000000000000000000000000000000000000000000000000000"},"payloadHash":{"algorithm":"sha256","value":"0000000000000000000000000000000000000000000000000000000000000000"},"signatures":[null]}}`,
		`{"apiVersion":"0.0.1","kind":"dsse","spec":{"envelopeHash":{"algorithm":"sha256","value":"0000000000000000000000000000000000000000000000000000000000000000"},"payloadHash":{"algorithm":"sha256","value":"0000000000000000000000000000000000000000000000000000000000000000"},"signatures":[{}]}}`,
		`{"apiVersion":"0.0.2","kind":"intoto","spec":{"content":{"envelope":{"payloadType":"t","signatures":[null]},"hash":{"algorithm":"sha256","value":"0000000000000000000000000000000000000000000000000000000000000000"},"payloadHash":{"algorithm":"sha256","value":"0000000000000000000000000000000000000000000000000000000000000000"}}}}`,
		`{"apiVersion":"0.0.2","kind":"intoto","spec":{"content":{"envelope":{"payloadType":"t","signatures":[]},"hash":{"algorithm":"sha256","value":"0000000000000000000000000000000000000000000000000000000000000000"},"payloadHash":{"algorithm":"sha256","value":"0000000000000000000000000000000000000000000000000000000000000000"}}}}`,
		`{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":null},"signature":null}}`, "{}", "null", "[]",
	} {
		f.Add([]byte(body))
	}
	pem, trust := k.PEM(), &Trust{}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.Contains(body, base64.StdEncoding.AppendEncode(nil, []byte(pem)[:60])) {
			return // it may be of this one
		}
		log := testregistry.NewSigner(t)
		v, err := NewVerifier(Attestor{Key: pem, Log: log.PEM()}, trust, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		tree := testregistry.Tree{Signer: log, Origin: "log.acme.io"}
		l := log.Logged(signed, string(body), time.Now())
		l2 := log.Logged(attested, string(body), time.Now())
		b, e, err := readBundle(testregistry.Bundle{Envelope: attested.Data, Log: log, At: time.Now(), Entry: string(body), Trees: []map[string]any{tree.Entry(string(body))}}.JSON())
		if err != nil {
			return
		}
		_, err = v.enveloped(b, e, nil, image, "t")
		if v.signature(layer{of: static.NewLayer(l.Data, types.OCILayer), annotations: l.Annotations}, image) == nil || err == nil {
			t.Fatalf("%q proves it", body)
		}
		if _, err := v.statement(layer{of: static.NewLayer(l2.Data, types.OCILayer), annotations: l2.Annotations}, image, "t"); err == nil {
			t.Fatalf("%q proves it", body)
		}
	})
}
