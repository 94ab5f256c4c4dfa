package images

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/notaryproject/notation-core-go/signature"

	"github.com/kvap/kvap/test/testregistry"
)

func notary(chain ...*testregistry.Authority) Attestor {
	a := Attestor{Format: Notation, IgnoreLog: true}
	for _, c := range chain {
		a.Chain += c.Certificate()
	}
	return a
}

func TestNotation(t *testing.T) {
	source := testregistry.New(t)
	image, another := source.Push("app:v1"), source.Push("app:v2")
	root, other := testregistry.NewRoot(t), testregistry.NewRoot(t)
	now := time.Now()
	leaf := testregistry.NewLeaf(t, root, now.Add(-time.Hour), now.Add(time.Hour))
	alone := testregistry.NewLeaf(t, nil, now.Add(-time.Hour), now.Add(time.Hour))
	ended := testregistry.NewLeaf(t, root, now.Add(-48*time.Hour), now.Add(-24*time.Hour))
	begins := testregistry.NewLeaf(t, root, now.Add(time.Hour), now.Add(2*time.Hour))
	stamps := testregistry.NewRoot(t)
	stamper := testregistry.NewStamper(t, stamps, time.Hour)
	of := func(change func(*testregistry.Notarization), chain ...*testregistry.Authority) testregistry.Notarization {
		n := testregistry.Notarization{Chain: chain}
		if change != nil {
			change(&n)
		}
		return n
	}
	stampedAt := func(at time.Time) func(*testregistry.Notarization) {
		return func(n *testregistry.Notarization) {
			n.StampedBy, n.StampRoot, n.StampedAt, n.At = stamper, stamps, at, at
		}
	}
	byCA := notary(root)
	stamped := byCA
	stamped.Stamps = stamps.Certificate()
	byOtherStamps := byCA
	byOtherStamps.Stamps = testregistry.NewRoot(t).Certificate()
	annotated := byCA
	annotated.Annotations = map[string]string{"team": "a"}
	revoking := byCA
	revoking.Chain += root.Revokes(now.Add(time.Hour), leaf)
	revokingOther := byCA
	revokingOther.Chain += root.Revokes(now.Add(time.Hour), ended)
	target, err := local().manifest(t.Context(), pin(t, image).repository.Digest(testregistry.Digest(image)))
	if err != nil {
		t.Fatal(err)
	}
	naming := func(media, image string, size int64) func(*testregistry.Notarization) {
		return func(n *testregistry.Notarization) {
			n.Payload = fmt.Appendf(nil, `{"targetArtifact":{"mediaType":%q,"digest":%q,"size":%d}}`, media, testregistry.Digest(image), size)
		}
	}
	mediaType := string(target.MediaType)
	strange := testregistry.NewLeaf(t, root, now.Add(-time.Hour), now.Add(time.Hour), pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}})
	for _, tt := range []struct {
		name string
		n    testregistry.Notarization
		by   Attestor
		want string
	}{
		{"under the authority", of(nil, leaf, root), byCA, ""},
		{"under another", of(nil, leaf, root), notary(other), "not by the attestor's certificates"},
		{"by a certificate that signed itself", of(nil, alone), notary(alone), ""},
		{"by the certificate itself", of(nil, leaf, root), notary(leaf), ""},
		{"by the certificate of cert, with certChain", of(nil, leaf, root), Attestor{Format: Notation, Certificate: leaf.Certificate(), Chain: other.Certificate()}, ""},
		{"expired", of(func(n *testregistry.Notarization) { n.At, n.Expiry = now.Add(-time.Hour), now.Add(-time.Minute) }, leaf, root), byCA, "it expired at"},
		{"not yet expired", of(func(n *testregistry.Notarization) { n.Expiry = now.Add(time.Hour) }, leaf, root), byCA, ""},
		{"by a certificate that ended", of(func(n *testregistry.Notarization) { n.At = now.Add(-36 * time.Hour) }, ended, root), byCA, "counts from"},
		{"by a certificate that did not begin", of(func(n *testregistry.Notarization) { n.At = now.Add(90 * time.Minute) }, begins, root), byCA, "counts from"},
		{"revoked", of(nil, leaf, root), revoking, "was revoked at"},
		{"another is revoked", of(nil, leaf, root), revokingOther, ""},
		{"with a timestamp, ended since", of(stampedAt(now.Add(-36*time.Hour)), ended, root), stamped, ""},
		{"with a timestamp that nobody asks for, ended since", of(stampedAt(now.Add(-36*time.Hour)), ended, root), byCA, "counts from"},
		{"without a timestamp", of(nil, leaf, root), stamped, "no timestamp"},
		{"with a timestamp by another", of(stampedAt(now.Add(-36*time.Hour)), ended, root), byOtherStamps, "unknown authority"},
		{"another scheme", of(func(n *testregistry.Notarization) { n.Scheme = signature.SigningSchemeX509SigningAuthority }, leaf, root), byCA, "signing scheme"},
		{"an attribute that must be understood", of(func(n *testregistry.Notarization) { n.Critical = "io.acme.x" }, leaf, root), byCA, "io.acme.x"},
		{"another payload", of(func(n *testregistry.Notarization) { n.PayloadType = "text/plain" }, leaf, root), byCA, "payload is of the type"},
		{"as it is", of(naming(mediaType, image, target.Size), leaf, root), byCA, ""},
		{"of another image", of(naming(mediaType, another, target.Size), leaf, root), byCA, "of another artifact"},
		{"of another size", of(naming(mediaType, image, target.Size+1), leaf, root), byCA, "of another artifact"},
		{"of another media type", of(naming("application/x", image, target.Size), leaf, root), byCA, "of another artifact"},
		{"a certificate that says what nobody knows", of(nil, strange, root), byCA, "unhandled critical extension"},
		{"annotations that it has not", of(nil, leaf, root), annotated, `annotation "team"`},
	} {
		for _, envelope := range []string{testregistry.JWS, testregistry.COSE} {
			r := testregistry.New(t)
			pushed := r.Copy(source, image)
			tt.n.Envelope = envelope
			r.Notarize(pushed, tt.n, nil)
			v, err := NewVerifier(tt.by, trusted(t), time.Now)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			says(t, tt.name+" ("+envelope+")", v.Signed(t.Context(), local(), pin(t, pushed)), tt.want)
		}
	}
	r := testregistry.New(t)
	pushed := r.Copy(source, image)
	v, err := NewVerifier(annotated, trusted(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	says(t, "none", v.Signed(t.Context(), local(), pin(t, pushed)), "no signature of Notary refers to")
	r.ReferAs(pushed, testregistry.NotationMedia, "text/plain", []byte("x"))
	r.ReferAs(pushed, testregistry.NotationMedia, testregistry.JWS, []byte("x"))
	r.ReferAs(pushed, testregistry.NotationMedia, testregistry.COSE, []byte("x"))
	says(t, "junk", v.Signed(t.Context(), local(), pin(t, pushed)), "no signature of")
	large := append(r.Notation(pushed, of(nil, leaf, root), map[string]string{"team": "a"}), strings.Repeat(" ", maxNotation)...)
	r.ReferAs(pushed, testregistry.NotationMedia, testregistry.JWS, large)
	says(t, "large", v.Signed(t.Context(), local(), pin(t, pushed)), "no signature of")
	r.Notarize(pushed, of(nil, leaf, root), map[string]string{"team": "a"})
	says(t, "annotations beside junk", v.Signed(t.Context(), local(), pin(t, pushed)), "")
	for i := range maxLayers {
		r.Refer(pushed, "application/x"+fmt.Sprint(i))
	}
	says(t, "many", v.Signed(t.Context(), local(), pin(t, pushed)), "50 at most are looked at")
}

// No bit of what is signed can be another.
func TestNotationFlips(t *testing.T) {
	r, root := testregistry.New(t), testregistry.NewRoot(t)
	leaf := testregistry.NewLeaf(t, root, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	image := r.Push("app:v1")
	target, err := local().manifest(t.Context(), pin(t, image).repository.Digest(testregistry.Digest(image)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(notary(root), trusted(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, media := range []string{testregistry.JWS, testregistry.COSE} {
		data := r.Notation(image, testregistry.Notarization{Envelope: media, Chain: []*testregistry.Authority{leaf, root}, Expiry: time.Now().Add(time.Hour)}, nil)
		if err := v.notation(data, media, target); err != nil {
			t.Fatal(err)
		}
		var parts [][]byte
		if media == testregistry.JWS {
			var e struct{ Payload, Protected, Signature string }
			if err := json.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			parts = [][]byte{[]byte(e.Payload), []byte(e.Protected), []byte(e.Signature)}
		} else {
			var e struct {
				_                             struct{} `cbor:",toarray"`
				Protected, Header, Payload, S cbor.RawMessage
			}
			if err := cbor.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			parts = [][]byte{e.Protected, e.Payload, e.S}
		}
		for _, part := range parts {
			at := bytes.Index(data, part)
			for i := at; i < at+len(part)-1; i++ { // the last digit of base64 may have bits that are none
				flipped := bytes.Clone(data)
				flipped[i] ^= 1
				if v.notation(flipped, media, target) == nil {
					t.Errorf("%s: with byte %d as %q it is proven", media, i-at, flipped[i])
				}
			}
		}
	}
}

func TestNotationAttestors(t *testing.T) {
	root := testregistry.NewRoot(t)
	for _, tt := range []struct {
		name, want string
		a          Attestor
	}{
		{"a key", "are by certificates", Attestor{Key: testregistry.NewSigner(t).PEM()}},
		{"keyless", "are by certificates", Attestor{Keyless: &Keyless{Issuer: "a"}}},
		{"nobody", "no certificate", Attestor{}},
		{"no list", "a list of revoked certificates", Attestor{Chain: root.Certificate() + "-----BEGIN X509 CRL-----\neA==\n-----END X509 CRL-----\n"}},
		{"stamps without a root", "no root", Attestor{Chain: root.Certificate(), Stamps: testregistry.NewStamper(t, root, time.Hour).Certificate()}},
	} {
		tt.a.Format = Notation
		_, err := NewVerifier(tt.a, trusted(t), time.Now)
		says(t, tt.name, err, tt.want)
	}
}

// What refers to an image attests something of it where it is signed itself.
func TestAttestedByNotation(t *testing.T) {
	const kind = "application/vnd.acme.scan"
	root, other := testregistry.NewRoot(t), testregistry.NewRoot(t)
	now := time.Now()
	leaf := testregistry.NewLeaf(t, root, now.Add(-time.Hour), now.Add(time.Hour))
	eve := testregistry.NewLeaf(t, other, now.Add(-time.Hour), now.Add(time.Hour))
	v, err := NewVerifier(notary(root), trusted(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(what string, r *testregistry.Registry, image, want string) []Statement {
		t.Helper()
		got, err := v.Attested(t.Context(), local(), pin(t, image), kind)
		says(t, what, err, want)
		return got
	}
	by := func(chain ...*testregistry.Authority) testregistry.Notarization {
		return testregistry.Notarization{Chain: chain}
	}
	r := testregistry.New(t)
	image := r.Push("app:v1")
	ask("none", r, image, "no attestation of the type")
	r.Refer(image, "application/vnd.acme.sbom", []byte("{}"))
	ask("another type", r, image, `but of "application/vnd.acme.sbom"`)
	scan := r.ReferAs(image, kind, "application/json", []byte(`{"critical":0}`))
	ask("unsigned", r, image, "no signature of Notary refers to")
	r.Notarize(scan, by(eve, other), nil)
	ask("signed by another", r, image, "not by the attestor's certificates")
	r.Notarize(scan, by(leaf, root), nil)
	got := ask("signed", r, image, "")
	if len(got) != 1 || fmt.Sprint(got[0].Predicate()) != "map[critical:0]" || got[0].Type != kind {
		t.Errorf("got %+v", got)
	}
	second := r.ReferAs(image, kind, "application/json", []byte(`{"critical":1}`))
	ask("a second that is unsigned", r, image, "no signature of Notary refers to")
	r.Notarize(second, by(leaf, root), nil)
	if got := ask("two", r, image, ""); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
	for what, data := range map[string]string{"no map": `[]`, "null": `null`, "no JSON": `{`} {
		r, one := testregistry.New(t), ""
		image := r.Push("app:v1")
		one = r.ReferAs(image, kind, "application/json", []byte(data))
		r.Notarize(one, by(leaf, root), nil)
		ask(what, r, image, "no map in JSON")
	}
	for i := range maxReferring {
		r.ReferAs(image, kind, "application/json", fmt.Append(nil, i))
	}
	ask("many", r, image, "10 at most are looked at")
}

// A registry that says that the attestation of one image is about another.
func TestAttestationOfAnother(t *testing.T) {
	v := &Verifier{}
	_, err := v.referring(t.Context(), Registry{}, pin(t, "a.b/c@sha256:"+strings.Repeat("a", 64)).repository, layer{subject: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("b", 64)}}, pin(t, "a.b/c@sha256:"+strings.Repeat("a", 64)), "x")
	says(t, "another", err, "it is about another image")
}

// Certificates cost nothing before it is known that they are few and small.
func TestChainsThatCostMuch(t *testing.T) {
	leaf := testregistry.NewLeaf(t, nil, time.Now(), time.Now().Add(time.Hour)).Raw()
	large := certificateOf(t, maxRSA+8)
	jws := func(chain ...[]byte) []byte {
		data, err := json.Marshal(map[string]any{"header": map[string]any{"x5c": chain}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	cose := func(chain ...[]byte) []byte {
		data, err := cbor.Marshal(cbor.Tag{Number: 18, Content: []any{[]byte{}, map[any]any{33: chain}, []byte{}, []byte{}}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for media, make := range map[string]func(...[]byte) []byte{testregistry.JWS: jws, testregistry.COSE: cose} {
		many := [][]byte{}
		for range maxBlocks + 1 {
			many = append(many, leaf)
		}
		says(t, "one, "+media, affordableChain(make(leaf), media), "")
		says(t, "many, "+media, affordableChain(make(many...), media), "more than 10 certificates")
		says(t, "large, "+media, affordableChain(make(leaf, large), media), "is not tried")
		v, err := NewVerifier(notary(testregistry.NewRoot(t)), trusted(t), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		says(t, "many, in an envelope, "+media, v.notation(make(many...), media, v1.Descriptor{}), "more than 10 certificates")
		says(t, "none, "+media, affordableChain(make([]byte("x")), media), "a certificate in it")
	}
}

func FuzzNotation(f *testing.F) {
	root := testregistry.NewRoot(f)
	leaf := testregistry.NewLeaf(f, root, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	r := testregistry.New(f)
	image := r.Push("app:v1")
	for i, envelope := range []string{testregistry.JWS, testregistry.COSE} {
		f.Add(i == 0, r.Notation(image, testregistry.Notarization{Envelope: envelope, Chain: []*testregistry.Authority{leaf, root}}, nil))
	}
	trust, err := PublicTrust()
	if err != nil {
		f.Fatal(err)
	}
	v, err := NewVerifier(notary(root), trust, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	other := v1.Descriptor{Digest: v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("a", 64)}}
	f.Fuzz(func(t *testing.T, isJWS bool, data []byte) {
		media := testregistry.COSE
		if isJWS {
			media = testregistry.JWS
		}
		if v.notation(data, media, other) == nil {
			t.Fatal("it is proven")
		}
	})
}

// certificateOf is one with a key of RSA of so many bits, which nobody has.
func certificateOf(t *testing.T, bits int) []byte {
	t.Helper()
	huge := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), bits-1, 1), E: 65537}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, huge, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
