package images

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/test/testregistry"
)

// local asks registries of this machine.
func local() Registry { return Registry{Insecure: true, Local: true} }

func pin(t *testing.T, text string) Image {
	t.Helper()
	image, err := Pinned(text)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func trusted(t *testing.T) *Trust {
	t.Helper()
	trust, err := PublicTrust()
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

func verifier(t *testing.T, a Attestor) *Verifier {
	t.Helper()
	a.IgnoreLog = a.Log == ""
	v, err := NewVerifier(a, trusted(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// says tells whether an error is as a test wants it: "" for none.
func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: want an error that says %q, got %v", what, want, err)
	case err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 3000):
		t.Errorf("%s: a long error: %q", what, err)
	}
}

func TestSigned(t *testing.T) {
	s := testregistry.New(t)
	k1, k2 := testregistry.NewSigner(t), testregistry.NewSigner(t)
	byK1 := s.Push("app:v1")
	s.Attach(byK1, "sig", k1.Signature(byK1, nil))
	unsigned := s.Push("app:v2")
	amongJunk := s.Push("app:v3")
	good := k1.Signature(amongJunk, nil)
	junk := []testregistry.Layer{{Data: []byte("x")}, {Data: good.Data, Annotations: map[string]string{testregistry.SignatureKey: "???"}}, k2.Signature(amongJunk, nil), k1.Signature(byK1, nil)}
	s.Attach(amongJunk, "sig", append(junk, good)...)
	copied := s.Host + "/other@" + testregistry.Digest(byK1)
	s.Attach(copied, "sig", k1.Signature(byK1, nil))
	annotated := s.Push("app:v4")
	s.Attach(annotated, "sig", k1.Signature(annotated, map[string]string{"a": "1"}), k1.Signature(annotated, map[string]string{"a": "2"}))
	elsewhere := s.Push("app:v5")
	s.Attach(s.Host+"/sigs@"+testregistry.Digest(elsewhere), "sig", k1.Signature(elsewhere, nil))

	for _, tt := range []struct {
		name     string
		image    string
		attestor Attestor
		want     string
	}{
		{"signed", byK1, Attestor{Key: k1.PEM()}, ""},
		{"unsigned", unsigned, Attestor{Key: k1.PEM()}, "there are no signatures of"},
		{"by another key", byK1, Attestor{Key: k2.PEM()}, "another key"},
		{"behind broken signatures", amongJunk, Attestor{Key: k1.PEM()}, ""},
		{"copied with its signature", copied, Attestor{Key: k1.PEM()}, ""},
		{"the second of two", annotated, Attestor{Key: k1.PEM(), Annotations: map[string]string{"a": "2"}}, ""},
		{"an annotation with another value", annotated, Attestor{Key: k1.PEM(), Annotations: map[string]string{"a": "3"}}, `annotation "a" is not "3"`},
		{"an annotation too much", annotated, Attestor{Key: k1.PEM(), Annotations: map[string]string{"a": "1", "b": "2"}}, `annotation "b"`},
		{"in another repository", elsewhere, Attestor{Key: k1.PEM(), Repository: s.Host + "/sigs"}, ""},
		{"in a wrong repository", elsewhere, Attestor{Key: k1.PEM(), Repository: s.Host + "/none"}, "there are no signatures of"},
		{"of no log", byK1, Attestor{Key: k1.PEM(), Log: k2.PEM()}, "no transparency log proof"},
	} {
		says(t, tt.name, verifier(t, tt.attestor).Signed(t.Context(), local(), pin(t, tt.image)), tt.want)
	}
}

func TestSignedPayload(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	signed := func(data string) testregistry.Layer {
		return testregistry.Layer{Data: []byte(data), Annotations: map[string]string{testregistry.SignatureKey: base64.StdEncoding.EncodeToString(k.Sign([]byte(data)))}}
	}
	other := string(testregistry.Payload("sha256:"+strings.Repeat("a", 64), nil))
	for _, data := range []string{"", "{}", "null", "[", `{"critical":null}`, other, strings.Repeat(" ", maxPayload) + string(testregistry.Payload(testregistry.Digest(image), nil))} {
		s.Attach(image, "sig", signed(data))
		if err := verifier(t, Attestor{Key: k.PEM()}).Signed(t.Context(), local(), pin(t, image)); err == nil {
			t.Errorf("the payload %.60q is taken", data)
		}
	}
}

func TestKeys(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	for name, k := range map[string]*testregistry.Signer{
		"sha224": testregistry.OnCurve(t, elliptic.P224(), crypto.SHA224), "sha256": testregistry.ByRSA(t, crypto.SHA256), "sha384": testregistry.OnCurve(t, elliptic.P384(), crypto.SHA384),
		"sha512": testregistry.OnCurve(t, elliptic.P521(), crypto.SHA512),
	} {
		s.Attach(image, "sig", k.Signature(image, nil))
		for _, hash := range []string{"sha224", "sha256", "sha384", "sha512"} {
			want := ""
			if hash != name {
				want = "another key"
			}
			says(t, name+" asked for as "+hash, verifier(t, Attestor{Key: k.PEM(), Hash: hash}).Signed(t.Context(), local(), pin(t, image)), want)
		}
	}
	k := testregistry.ByEd25519(t)
	s.Attach(image, "sig", k.Signature(image, nil))
	says(t, "ed25519", verifier(t, Attestor{Key: k.PEM()}).Signed(t.Context(), local(), pin(t, image)), "")
}

func TestAttestors(t *testing.T) {
	k := testregistry.NewSigner(t)
	root := testregistry.NewAuthority(t, nil, time.Hour)
	many := strings.Repeat(root.Certificate(), maxBlocks+1)
	for _, tt := range []struct {
		name string
		a    Attestor
		want string
	}{
		{"nobody", Attestor{}, "anybody could sign"},
		{"a key and a certificate", Attestor{Key: k.PEM(), Certificate: root.Certificate()}, "not both"},
		{"no PEM", Attestor{Key: "cosign.pub"}, "no PEM block"},
		{"a certificate as a key", Attestor{Key: root.Certificate()}, "no PEM block PUBLIC KEY"},
		{"two keys in one", Attestor{Key: k.PEM() + k.PEM()}, "no PEM block"},
		{"an unknown hash", Attestor{Key: k.PEM(), Hash: "md5"}, `"md5" is not known`},
		{"a log that is no key", Attestor{Key: k.PEM(), Log: "x"}, "the key of the log"},
		{"many certificates", Attestor{Chain: many}, "more than 10 blocks"},
		{"much", Attestor{Chain: strings.Repeat("x", maxPEM+1)}, "more than 65536 bytes"},
		{"a chain without a root", Attestor{Chain: testregistry.NewAuthority(t, root, time.Hour).Certificate()}, "no root"},
		{"a certificate of another chain", Attestor{Certificate: testregistry.NewAuthority(t, root, time.Hour).Certificate(), Chain: testregistry.NewAuthority(t, nil, time.Hour).Certificate()}, "not issued under its chain"},
		{"a certificate in base64", Attestor{Certificate: base64.StdEncoding.EncodeToString([]byte(root.Certificate()))}, ""},
	} {
		_, err := NewVerifier(tt.a, trusted(t), time.Now)
		says(t, tt.name, err, tt.want)
	}
}

func TestCertificates(t *testing.T) {
	s := testregistry.New(t)
	root, other := testregistry.NewAuthority(t, nil, time.Hour), testregistry.NewAuthority(t, nil, time.Hour)
	between, ended := testregistry.NewAuthority(t, root, time.Hour), testregistry.NewAuthority(t, root, -time.Minute)
	leaf, late := testregistry.NewAuthority(t, between, time.Hour), testregistry.NewAuthority(t, between, -time.Minute)
	underEnded := testregistry.NewAuthority(t, ended, time.Hour)
	log := testregistry.NewSigner(t)
	image := s.Push("app:v1")
	logged := func(a *testregistry.Authority, at time.Time, chain ...*testregistry.Authority) testregistry.Layer {
		b := a.Certified(image, chain...)
		return log.Logged(b, testregistry.EntryOf(b, a.Certificate()), at)
	}
	before := time.Now().Add(-30 * time.Minute)
	for _, tt := range []struct {
		name     string
		beside   testregistry.Layer
		attestor Attestor
		want     string
	}{
		{"the key of a certificate", leaf.Signature(image, nil), Attestor{Certificate: leaf.Certificate()}, ""},
		{"the key of one that ended", late.Signature(image, nil), Attestor{Certificate: late.Certificate()}, ""},
		{"a certificate and its chain", leaf.Signature(image, nil), Attestor{Certificate: leaf.Certificate(), Chain: between.Certificate() + root.Certificate()}, ""},
		{"beside the signature, under the root", leaf.Certified(image, between), Attestor{Chain: root.Certificate()}, ""},
		{"under what the attestor has between", leaf.Certified(image), Attestor{Chain: between.Certificate() + root.Certificate()}, ""},
		{"without what is between", leaf.Certified(image), Attestor{Chain: root.Certificate()}, "unknown authority"},
		{"under another root", leaf.Certified(image, between), Attestor{Chain: other.Certificate()}, "unknown authority"},
		{"a root beside it is none", leaf.Certified(image, between, root), Attestor{Chain: other.Certificate()}, "unknown authority"},
		{"none beside it", leaf.Signature(image, nil), Attestor{Chain: root.Certificate()}, "no certificate"},
		{"that of another signature", testregistry.Layer{Data: leaf.Certified(image).Data, Annotations: map[string]string{testregistry.SignatureKey: leaf.Certified(image).Annotations[testregistry.SignatureKey], testregistry.CertificateKey: between.Certificate()}}, Attestor{Chain: root.Certificate()}, "another key"},
		{"ended", late.Certified(image, between), Attestor{Chain: root.Certificate()}, "expired"},
		{"ended, but valid when it was logged", logged(late, before, between), Attestor{Chain: root.Certificate(), Log: log.PEM()}, ""},
		{"what is between ended", underEnded.Certified(image, ended), Attestor{Chain: root.Certificate()}, "expired"},
		{"what is between ended before it was logged", logged(underEnded, time.Now(), ended), Attestor{Chain: root.Certificate(), Log: log.PEM()}, "expired"},
	} {
		s.Attach(image, "sig", tt.beside)
		says(t, tt.name, verifier(t, tt.attestor).Signed(t.Context(), local(), pin(t, image)), tt.want)
	}
}

func TestLog(t *testing.T) {
	s := testregistry.New(t)
	k, other, log := testregistry.NewSigner(t), testregistry.NewSigner(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	good, again := k.Signature(image, nil), k.Signature(image, map[string]string{"a": "1"})
	now := time.Now()
	for _, tt := range []struct {
		name   string
		beside testregistry.Layer
		want   string
	}{
		{"of this signature", log.Logged(good, testregistry.EntryOf(good, k.PEM()), now), ""},
		{"of another payload", log.Logged(good, testregistry.EntryOf(testregistry.Layer{Data: again.Data, Annotations: good.Annotations}, k.PEM()), now), "verifying signature"},
		{"of another signature", log.Logged(good, testregistry.EntryOf(testregistry.Layer{Data: good.Data, Annotations: k.Signature(image, nil).Annotations}, k.PEM()), now), "signature does not match"},
		{"of another key", log.Logged(good, testregistry.EntryOf(good, other.PEM()), now), "verifying signature"},
		{"by another log", other.Logged(good, testregistry.EntryOf(good, k.PEM()), now), "another log"},
		{"forged", func() testregistry.Layer {
			b := log.Logged(good, testregistry.EntryOf(good, k.PEM()), now)
			b.Annotations[testregistry.BundleKey] = strings.Replace(b.Annotations[testregistry.BundleKey], `"logIndex":7`, `"logIndex":8`, 1)
			return b
		}(), "not signed by the log"},
		{"of another kind", log.Logged(good, `{"kind":"rpm","spec":{}}`, now), "kind 'rpm'"},
		{"of a long kind", log.Logged(good, `{"kind":"`+strings.Repeat("x", 100_000)+`"}`, now), "invalid kind value"},
		{"of a signature that is none", log.Logged(good, `{"kind":"dsse","apiVersion":"0.0.1","spec":{"signatures":[{},null]}}`, now), "is required"},
		{"none", good, "no transparency log proof"},
	} {
		s.Attach(image, "sig", tt.beside)
		says(t, tt.name, verifier(t, Attestor{Key: k.PEM(), Log: log.PEM()}).Signed(t.Context(), local(), pin(t, image)), tt.want)
	}
}

// The public log names itself by the hash of its key.
func TestPublicLog(t *testing.T) {
	if logs := trusted(t).logs; logs["c0d23d6ad406973f9559f3ba2d1ca01f84147d8ffc5b8445c224f98b9591801d"] == nil {
		t.Errorf("got %v", logs)
	}
}

func TestTooMany(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	s.Attach(image, "sig", append(slices.Repeat([]testregistry.Layer{{Data: []byte("x")}}, maxLayers), k.Signature(image, nil))...)
	says(t, "many layers", verifier(t, Attestor{Key: k.PEM()}).Signed(t.Context(), local(), pin(t, image)), "has 51 layers, and 50 at most are looked at")
}

func TestUnreachable(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	s.Attach(image, "sig", k.Signature(image, nil))
	v := verifier(t, Attestor{Key: k.PEM()})
	for status, want := range map[int]struct {
		unreachable bool
		calls       int
	}{401: {false, 1}, 403: {false, 1}, 404: {false, 1}, 429: {true, 2}, 500: {true, 1}, 503: {true, 2}} {
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.WriteHeader(status)
			return true
		})
		err := v.Signed(t.Context(), local(), pin(t, image))
		if err == nil || errors.Is(err, ErrUnreachable) != want.unreachable {
			t.Errorf("%d: %v", status, err)
		}
		calls := 0
		for _, one := range s.Asked() {
			if strings.Contains(one, "/manifests/") {
				calls++
			}
		}
		if calls != want.calls {
			t.Errorf("%d: asked %d times", status, calls)
		}
	}
	s.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = connection.Close()
		}
		return true
	})
	if err := v.Signed(t.Context(), local(), pin(t, image)); !errors.Is(err, ErrUnreachable) {
		t.Errorf("a closed connection: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	s.Attach(image, "sig", k.Signature(image, nil))
	s.Answer(nil)
	v := verifier(t, Attestor{Key: k.PEM()})
	says(t, "this machine", v.Signed(t.Context(), Registry{Insecure: true}, pin(t, image)), "of this machine")
	says(t, "without TLS", v.Signed(t.Context(), Registry{Local: true}, pin(t, image)), "has no TLS")
	for _, host := range []string{"169.254.169.254", "[fe80::1]", "0.0.0.0", "[::1]"} {
		_, err := Registry{Insecure: true}.Resolve(t.Context(), host+":1/x:1")
		says(t, host, err, "of this machine or its link")
	}
	if len(s.Asked()) > 0 {
		t.Errorf("asked for %v", s.Asked())
	}
}

func TestResolve(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	got, err := local().Resolve(t.Context(), s.Host+"/app:v1")
	if err != nil || got.String() != image {
		t.Errorf("want %s, got %s %v", image, got, err)
	}
	s.Answer(func(http.ResponseWriter, *http.Request) bool { panic("a digest is asked for") })
	pinned, err := local().Resolve(t.Context(), image)
	if err != nil || pinned.Digest() != testregistry.Digest(image) {
		t.Errorf("of a digest %s %v", pinned, err)
	}
	for _, bad := range []string{"", "UPPER/x:1", "a b", "x@sha256:1"} {
		if got, err := local().Resolve(t.Context(), bad); err == nil {
			t.Errorf("%q is %s", bad, got)
		}
	}
}

// Where a registry names no digest, the manifest has it.
func TestResolveWithoutADigest(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodHead {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		return true
	})
	got, err := local().Resolve(t.Context(), s.Host+"/app:v1")
	if err != nil || got.String() != image {
		t.Errorf("want %s, got %s %v", image, got, err)
	}
}

// What is refused here is not a failure of a registry.
func TestRefusedIsNotUnreachable(t *testing.T) {
	_, err := Registry{Insecure: true}.Resolve(t.Context(), "127.0.0.1:1/x:1")
	if err == nil || errors.Is(err, ErrUnreachable) {
		t.Errorf("this machine: %v", err)
	}
}

// How much is read of an answer does not depend on what the repository, or a redirect, is called.
func TestManifestsAreBounded(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	v := verifier(t, Attestor{Key: k.PEM()})
	for _, repository := range []string{"app", "blobs/app"} {
		s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write([]byte(`{"layers":[]`))
			for range 3 * maxManifest / 1024 {
				if _, err := w.Write([]byte(strings.Repeat(" ", 1024))); err != nil {
					return true
				}
			}
			_, _ = w.Write([]byte(`}`))
			return true
		})
		image := pin(t, s.Host+"/"+repository+"@sha256:"+strings.Repeat("a", 64))
		says(t, repository, v.Signed(t.Context(), local(), image), "more than 1048576 bytes")
	}
}

// A manifest may say that a layer is elsewhere, of which no list of registries knows.
func TestLayersElsewhere(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	l := k.Signature(image, nil)
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		_, _ = w.Write(l.Data)
	}))
	defer elsewhere.Close()
	at := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
	blob := fmt.Sprintf(`{"mediaType":"text/plain","size":%d,"digest":"sha256:%x","urls":[%q],"annotations":{%q:%q}}`,
		len(l.Data), sum(l.Data), at, testregistry.SignatureKey, l.Annotations[testregistry.SignatureKey])
	manifest := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":` + blob + `,"layers":[` + blob + `]}`
	s.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = w.Write([]byte(manifest))
		return true
	})
	says(t, "elsewhere", verifier(t, Attestor{Key: k.PEM()}).Signed(t.Context(), local(), pin(t, image)), "no signature of")
	if asked {
		t.Error("it was asked for where the manifest says")
	}
}

// A proxy is asked for no address of this machine or its link either: there it is the proxy's.
func TestAddressesByProxy(t *testing.T) {
	for _, host := range []string{"169.254.169.254", "127.0.0.1:6443", "[fe80::1]", "[::ffff:127.0.0.1]:1"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host+"/v2/", nil)
		if err != nil {
			t.Fatal(err)
		}
		inner := Registry{}.transport().(confined)
		inner.RoundTripper = nowhere{}
		response, err := inner.RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		says(t, host, err, "of this machine or its link")
	}
}

// nowhere stands for a proxy.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the proxy was asked")
}

// A certificate beside a signature may be anybody's: its key costs little before it is trusted.
func TestKeysThatProveNothing(t *testing.T) {
	for bits, want := range map[int]string{1024: "2048 at least", 2047: "2048 at least", 2048: ""} {
		err := supported(&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), bits-1, 1), E: 65537})
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("a key of %d bits: %v", bits, err)
		}
	}
}

func TestKeysThatCostMuch(t *testing.T) {
	n := new(big.Int).SetBit(big.NewInt(1), 100_000, 1)
	huge := &rsa.PublicKey{N: n, E: 1<<31 - 1}
	if err := supported(huge); err == nil {
		t.Error("a key of 100,000 bits is supported")
	}
	root := testregistry.NewAuthority(t, nil, time.Hour)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, huge, key)
	if err != nil {
		t.Fatal(err)
	}
	beside := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s := testregistry.New(t)
	image := s.Push("app:v1")
	l := testregistry.Layer{Data: testregistry.Payload(testregistry.Digest(image), nil), Annotations: map[string]string{
		testregistry.SignatureKey: base64.StdEncoding.EncodeToString(n.Bytes()[:n.BitLen()/8]), testregistry.CertificateKey: beside,
	}}
	s.Attach(image, "sig", l)
	v := verifier(t, Attestor{Chain: root.Certificate()})
	says(t, "the certificate", v.Signed(t.Context(), local(), pin(t, image)), "bits")
	l = root.Certified(image)
	l.Annotations[testregistry.ChainKey] = beside
	s.Attach(image, "sig", l)
	says(t, "the chain", v.Signed(t.Context(), local(), pin(t, image)), "bits")
	// A log's entry has a key too, and a log takes in what anybody signs.
	k, log, another := testregistry.NewSigner(t), testregistry.NewSigner(t), testregistry.NewSigner(t)
	l = k.Signature(image, nil)
	forged := log.Logged(l, testregistry.EntryOf(l, beside), time.Now())
	s.Attach(image, "sig", forged)
	says(t, "the key of an entry", verifier(t, Attestor{Key: k.PEM(), Log: log.PEM()}).Signed(t.Context(), local(), pin(t, image)), "bits")
	behind := log.Logged(l, testregistry.EntryOf(l, root.Certificate()+beside), time.Now())
	s.Attach(image, "sig", behind)
	says(t, "a key behind another", verifier(t, Attestor{Key: k.PEM(), Log: log.PEM()}).Signed(t.Context(), local(), pin(t, image)), "bits")
	promise := another.Logged(l, testregistry.EntryOf(l, beside), time.Now()).Annotations[testregistry.BundleKey]
	_, rest, _ := strings.Cut(forged.Annotations[testregistry.BundleKey], `,"Payload"`)
	promise, _, _ = strings.Cut(promise, `,"Payload"`)
	forged.Annotations[testregistry.BundleKey] = promise + `,"Payload"` + rest
	s.Attach(image, "sig", forged)
	says(t, "the entry of a log", verifier(t, Attestor{Key: k.PEM(), Log: log.PEM()}).Signed(t.Context(), local(), pin(t, image)), "not signed by the log")
}
