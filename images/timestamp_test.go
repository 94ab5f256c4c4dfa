package images

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/test/testregistry"
)

// stampedBy is a trust that has a timestamp authority too, since a time.
func stampedBy(t *testing.T, trust *Trust, since time.Time, chain ...*testregistry.Authority) *Trust {
	t.Helper()
	out := *trust
	var certificates []*x509.Certificate
	for _, c := range chain {
		read, err := x509.ParseCertificate(c.Raw())
		if err != nil {
			t.Fatal(err)
		}
		certificates = append(certificates, read)
	}
	one, err := newStamper(certificates)
	if err != nil {
		t.Fatal(err)
	}
	one.Start = since
	out.stampers = []stamper{one}
	return &out
}

func TestTimestamps(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	root, log := testregistry.NewAuthority(t, nil, time.Hour), testregistry.NewSigner(t)
	trust := trustIn(t, root, log)
	stamps, stamps2 := testregistry.NewRoot(t), testregistry.NewRoot(t)
	ended := testregistry.NewStamper(t, stamps, -time.Minute) // valid when it stamped
	other := testregistry.NewStamper(t, stamps2, time.Hour)
	notCritical := testregistry.NewStamper(t, stamps, time.Hour, x509.ExtKeyUsageTimeStamping)
	notForTime := testregistry.NewStamper(t, stamps, time.Hour, x509.ExtKeyUsageCodeSigning)
	then := time.Now().Add(-30 * time.Minute)
	during := then.Add(time.Minute)
	ann := testregistry.NewHolder(t, root, testregistry.Identity{URI: workflow, Issuer: actions}, then)
	signed, again := ann.Certified(image), ann.Certified(image)
	message := testregistry.SignatureOf(signed)
	by := func(a *testregistry.Authority, at time.Time) testregistry.Layer {
		return testregistry.Stamped(signed, a.Stamp(message, at, true))
	}
	keyless := &Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true}
	policy := Attestor{Keyless: keyless, IgnoreLog: true, Stamps: stamps.Certificate()}
	trusting := Attestor{Keyless: keyless, IgnoreLog: true}
	both := policy
	both.IgnoreLog = false
	logged := func(l testregistry.Layer, at time.Time) testregistry.Layer {
		return log.Logged(l, testregistry.EntryOf(l, ann.Certificate()), at)
	}
	withLeaf := policy
	withLeaf.Stamps = ended.Certificate() + stamps.Certificate()
	flipped := ended.Stamp(message, during, true)
	flipped[len(flipped)-5] ^= 1
	for _, tt := range []struct {
		name   string
		beside testregistry.Layer
		by     Attestor
		want   string
	}{
		{"by the policy's authority, which ended since", by(ended, during), policy, ""},
		{"by another authority", by(other, during), policy, "unknown authority"},
		{"none", signed, policy, "no timestamp"},
		{"none, and none is asked for", signed, trusting, "expired"},
		{"after the certificate ended", by(ended, then.Add(15*time.Minute)), policy, "expired"},
		{"before the certificate began", by(ended, then.Add(-15*time.Minute)), policy, "not yet valid"},
		{"before the authority's own certificate", by(ended, then.AddDate(-2, 0, 0)), policy, "not yet valid"},
		{"of another signature", testregistry.Stamped(signed, ended.Stamp(testregistry.SignatureOf(again), during, true)), policy, "of another signature"},
		{"by a certificate whose use is not critical", by(notCritical, during), policy, "must be set as critical"},
		{"by a certificate for something else", by(notForTime, during), policy, "incompatible key usage"},
		{"with another bit", testregistry.Stamped(signed, flipped), policy, "verification"},
		{"without the authority's certificate in it", testregistry.Stamped(signed, ended.Stamp(message, during, false)), withLeaf, ""},
		{"whose certificate nobody has", testregistry.Stamped(signed, ended.Stamp(message, during, false)), policy, "certificate not found"},
		{"by the trust's authority", by(ended, during), trusting, ""},
		{"by nobody's authority", by(other, during), trusting, "expired"},
		{"and a log", logged(by(ended, during), during), both, ""},
		{"and no log", by(ended, during), both, "no transparency log proof"},
		{"a log alone", logged(signed, during), both, "no timestamp"},
		{"and a log that says later", logged(by(ended, during), then.Add(20*time.Minute)), both, "expired"},
		{"after the certificate ended, and a log that says before", logged(by(ended, then.Add(20*time.Minute)), during), both, "expired"},
	} {
		s.Attach(image, "sig", tt.beside)
		v, err := NewVerifier(tt.by, stampedBy(t, trust, then.Add(-time.Hour), stamps, ended), time.Now)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		says(t, tt.name, v.Signed(t.Context(), local(), pin(t, image)), tt.want)
	}
	s.Attach(image, "sig", by(ended, during))
	v, err := NewVerifier(trusting, stampedBy(t, trust, during.Add(time.Minute), stamps, ended), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	says(t, "before the trust's authority was trusted", v.Signed(t.Context(), local(), pin(t, image)), "expired")
}

// An attestation has a timestamp of its envelope, and a bundle one of its signature.
func TestTimestampsOfAttestations(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	root, stamps := testregistry.NewAuthority(t, nil, time.Hour), testregistry.NewRoot(t)
	authority := testregistry.NewStamper(t, stamps, time.Hour)
	then := time.Now().Add(-30 * time.Minute)
	ann := testregistry.NewHolder(t, root, testregistry.Identity{URI: workflow, Issuer: actions}, then)
	envelope := ann.Attestation(image, "slsa", `{}`)
	envelope.Annotations = map[string]string{testregistry.CertificateKey: ann.Certificate()}
	a := Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true}, IgnoreLog: true, Stamps: stamps.Certificate()}
	attested := func(f Format) error {
		a.Format = f
		v, err := NewVerifier(a, trustIn(t, root, testregistry.NewSigner(t)), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Attested(t.Context(), local(), pin(t, image), "slsa")
		return err
	}
	s.Attach(image, "att", testregistry.Stamped(envelope, authority.Stamp(envelope.Data, then.Add(time.Minute), true)))
	says(t, "a layer", attested(Layers), "")
	s.Attach(image, "att", testregistry.Stamped(envelope, authority.Stamp([]byte("x"), then.Add(time.Minute), true)))
	says(t, "a layer with a timestamp of something else", attested(Layers), "of another signature")
	var e struct{ Signatures []struct{ Sig []byte } }
	if err := json.Unmarshal(envelope.Data, &e); err != nil {
		t.Fatal(err)
	}
	bundle := testregistry.Bundle{Envelope: envelope.Data, Certificate: ann}
	s.Refer(image, testregistry.BundleMedia, bundle.JSON())
	says(t, "a bundle without one", attested(Bundles), "no timestamp")
	s = testregistry.New(t)
	image = s.Push("app:v1")
	envelope = ann.Attestation(image, "slsa", `{}`)
	if err := json.Unmarshal(envelope.Data, &e); err != nil {
		t.Fatal(err)
	}
	bundle = testregistry.Bundle{Envelope: envelope.Data, Certificate: ann, Stamps: [][]byte{[]byte("x"), authority.Stamp(e.Signatures[0].Sig, then.Add(time.Minute), true)}}
	s.Refer(image, testregistry.BundleMedia, bundle.JSON())
	says(t, "a bundle", attested(Bundles), "")
	bundle.Stamps = make([][]byte, 33)
	_, _, err := readBundle(bundle.JSON())
	says(t, "many", err, "more than 10 timestamps")
}

func TestTimestampAuthorities(t *testing.T) {
	root, second := testregistry.NewRoot(t), testregistry.NewRoot(t)
	one, two := testregistry.NewStamper(t, root, time.Hour), testregistry.NewStamper(t, root, time.Hour)
	for _, tt := range []struct{ name, text, want string }{
		{"a root", root.Certificate(), ""},
		{"a root and an authority", one.Certificate() + root.Certificate(), ""},
		{"no root", one.Certificate(), "no root"},
		{"two authorities", one.Certificate() + two.Certificate() + root.Certificate(), "several timestamp authorities"},
		{"nothing", "x", "no certificate"},
		{"thirteen", strings.Repeat(second.Certificate(), 13), "more than 10 blocks"},
	} {
		_, err := NewVerifier(Attestor{Key: testregistry.NewSigner(t).PEM(), IgnoreLog: true, Stamps: tt.text}, trusted(t), time.Now)
		says(t, tt.name, err, tt.want)
	}
	if n := len(trusted(t).stampers); n != 1 {
		t.Errorf("the public Sigstore has %d timestamp authorities", n)
	}
}

func FuzzTimestamp(f *testing.F) {
	root := testregistry.NewRoot(f)
	authority := testregistry.NewStamper(f, root, time.Hour)
	good := authority.Stamp([]byte("message"), time.Now(), true)
	f.Add(good)
	f.Add(authority.Stamp([]byte("other"), time.Now(), false))
	f.Add(base64.StdEncoding.AppendEncode(nil, good))
	s, err := readStampers(authority.Certificate() + root.Certificate())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if _, err := stamped(s, [][]byte{answer}, []byte("no such message")); err == nil {
			t.Fatal("it is proven")
		}
	})
}

// A timestamp that the authority of the public Sigstore made, without its certificate in it.
func TestPublicTimestamp(t *testing.T) {
	var recorded struct {
		Signature, Answer []byte
		Trust             json.RawMessage
	}
	text, err := os.ReadFile("testdata/stamp.json")
	if err == nil {
		err = json.Unmarshal(text, &recorded)
	}
	if err != nil {
		t.Fatal(err)
	}
	trust, err := ReadTrust(recorded.Trust)
	if err != nil {
		t.Fatal(err)
	}
	at, err := stamped(trust.stampers, [][]byte{recorded.Answer}, recorded.Signature)
	if want := time.Date(2026, 6, 4, 17, 43, 29, 0, time.UTC); err != nil || !at.Equal(want) {
		t.Errorf("want %s, got %s %v", want, at, err)
	}
	_, err = stamped(trust.stampers, [][]byte{recorded.Answer}, recorded.Signature[1:])
	says(t, "of another signature", err, "of another signature")
	for i := range recorded.Answer {
		recorded.Answer[i] ^= 1
		// The name of who signed stands there twice, once signed; the other does not count.
		if again, err := stamped(trust.stampers, [][]byte{recorded.Answer}, recorded.Signature); err == nil && !again.Equal(at) {
			t.Errorf("with byte %d as %x it is of %s", i, recorded.Answer[i], again)
		}
		recorded.Answer[i] ^= 1
	}
}
