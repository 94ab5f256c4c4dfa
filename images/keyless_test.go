package images

import (
	"crypto"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/kvap/kvap/test/testregistry"
)

const (
	workflow = "https://github.com/acme/web/.github/workflows/release.yaml@refs/heads/main"
	actions  = "https://token.actions.githubusercontent.com"
)

// trustIn is a trusted root of an authority and a log.
func trustIn(t *testing.T, root *testregistry.Authority, log *testregistry.Signer) *Trust {
	t.Helper()
	trust, err := ReadTrust(testregistry.TrustedRoot(t, root, log))
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

func TestKeyless(t *testing.T) {
	s := testregistry.New(t)
	root, other := testregistry.NewAuthority(t, nil, time.Hour), testregistry.NewAuthority(t, nil, time.Hour)
	log, otherLog := testregistry.NewSigner(t), testregistry.NewSigner(t)
	trust := trustIn(t, root, log)
	image := s.Push("app:v1")
	then := time.Now().Add(-30 * time.Minute)
	signed := func(by *testregistry.Authority, of testregistry.Identity, in *testregistry.Signer, at time.Time) testregistry.Layer {
		h := testregistry.NewHolder(t, by, of, then)
		l := h.Certified(image)
		return in.Logged(l, testregistry.EntryOf(l, h.Certificate()), at)
	}
	good := signed(root, testregistry.Identity{URI: workflow, Issuer: actions}, log, then.Add(time.Minute))
	byMail := signed(root, testregistry.Identity{Email: "ann@acme.io", Issuer: "https://accounts.acme.io"}, log, then.Add(time.Minute))
	byName := signed(root, testregistry.Identity{Other: "ann!acme.io", Issuer: actions}, log, then.Add(time.Minute))
	exact := Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true}
	with := func(change func(*Keyless)) Keyless {
		k := exact
		change(&k)
		return k
	}
	for _, tt := range []struct {
		name   string
		beside testregistry.Layer
		by     Keyless
		want   string
	}{
		{"the subject and the issuer", good, exact, ""},
		{"patterns", good, Keyless{Issuer: "https://token.*", Subject: "https://github.com/acme/*", IgnoreSCT: true}, ""},
		{"a regular expression", good, Keyless{Issuer: actions, SubjectRegExp: "github.com/acme/.+@refs/heads/main$", IgnoreSCT: true}, ""},
		{"an issuer alone", good, Keyless{Issuer: actions, IgnoreSCT: true}, ""},
		{"a subject alone", byMail, Keyless{Subject: "*@acme.io", IgnoreSCT: true}, ""},
		{"a name of another kind", byName, Keyless{Issuer: actions, Subject: "ann!acme.io", IgnoreSCT: true}, ""},
		{"another name of another kind", byName, Keyless{Issuer: actions, Subject: "eve!acme.io", IgnoreSCT: true}, "its subject is"},
		{"another issuer", good, with(func(k *Keyless) { k.Issuer = "https://accounts.acme.io" }), "the issuer of its identity is"},
		{"an issuer and a regular expression of which one fails", good, with(func(k *Keyless) { k.IssuerRegExp = "gitlab" }), "the issuer of its identity is"},
		{"another subject", good, with(func(k *Keyless) { k.Subject = "https://github.com/acme/api/*" }), "its subject is"},
		{"other letters", good, with(func(k *Keyless) { k.Subject = strings.ToUpper(workflow) }), "its subject is"},
		{"no name at all", signed(root, testregistry.Identity{Issuer: actions}, log, then.Add(time.Minute)), exact, "its subject is"},
		{"no issuer at all", signed(root, testregistry.Identity{URI: workflow}, log, then.Add(time.Minute)), exact, "the issuer of its identity is"},
		{"an authority that nobody trusts", signed(other, testregistry.Identity{URI: workflow, Issuer: actions}, log, then.Add(time.Minute)), exact, "unknown authority"},
		{"one that the attestor trusts", signed(other, testregistry.Identity{URI: workflow, Issuer: actions}, log, then.Add(time.Minute)), with(func(k *Keyless) { k.Roots = other.Certificate() }), ""},
		{"one that it trusts no longer", good, with(func(k *Keyless) { k.Roots = other.Certificate() }), "unknown authority"},
		{"a log that nobody trusts", signed(root, testregistry.Identity{URI: workflow, Issuer: actions}, otherLog, then.Add(time.Minute)), exact, "another log"},
		{"logged after the certificate ended", signed(root, testregistry.Identity{URI: workflow, Issuer: actions}, log, then.Add(time.Hour)), exact, "expired"},
		{"logged before the log was trusted", signed(root, testregistry.Identity{URI: workflow, Issuer: actions}, log, then.Add(-48*time.Hour)), exact, "not trusted at"},
		{"no log", testregistry.NewHolder(t, root, testregistry.Identity{URI: workflow, Issuer: actions}, then).Certified(image), exact, "no transparency log proof"},
		{"no log of certificates", good, with(func(k *Keyless) { k.IgnoreSCT = false }), "no log of certificates"},
	} {
		s.Attach(image, "sig", tt.beside)
		v, err := NewVerifier(Attestor{Keyless: &tt.by}, trust, time.Now)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		says(t, tt.name, v.Signed(t.Context(), local(), pin(t, image)), tt.want)
	}
	for name, k := range map[string]Keyless{"anybody could sign": {}, "error parsing regexp": {SubjectRegExp: "("}, "no certificate": {Issuer: "a", Roots: "x"}} {
		_, err := NewVerifier(Attestor{Keyless: &k}, trust, time.Now)
		says(t, name, err, name)
	}
}

// A certificate that Fulcio issued, of which a public log of certificates knows.
func TestPublicTrust(t *testing.T) {
	text, err := os.ReadFile("testdata/fulcio.pem")
	if err != nil {
		t.Fatal(err)
	}
	certificates, err := readCertificates(string(text))
	if err != nil {
		t.Fatal(err)
	}
	c := certificates[0]
	v, err := NewVerifier(Attestor{Keyless: &Keyless{Issuer: actions}}, trusted(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	during := c.NotBefore.Add(time.Minute)
	if err := v.issued(c, during); err != nil {
		t.Error(err)
	}
	if err := v.identity.is(c); err != nil {
		t.Error(err)
	}
	says(t, "after it ended", v.issued(c, c.NotAfter.Add(time.Minute)), "expired")
	says(t, "before anybody was trusted", v.issued(c, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)), "nobody is trusted")
	known := v.ctLogs
	v.ctLogs = nil
	says(t, "no log of certificates is trusted", v.issued(c, during), "no log of certificates that is trusted")
	for _, l := range known {
		l.ValidityPeriodEnd = time.Date(2021, 6, 1, 0, 0, 0, 0, time.UTC)
	}
	v.ctLogs = known
	says(t, "the log was trusted before", v.issued(c, during), "no log of certificates that is trusted")
}

func TestReadTrust(t *testing.T) {
	for text, want := range map[string]string{
		"": "no JSON", "{}": "no authority", `{"certificateAuthorities":[{"certChain":{"certificates":[{"rawBytes":"AAAA"}]}}]}`: "a certificate of the trusted root",
	} {
		_, err := ReadTrust([]byte(text))
		says(t, text, err, want)
	}
}

func TestWild(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"*", "", true}, {"a", "a", true}, {"a", "b", false}, {"a*c", "abbc", true}, {"a*c", "abbd", false}, {"?", "", false},
		{"*@acme.io", "ann@acme.io", true}, {"*@acme.io", "ann@acme.io.evil", false}, {"a*b*c", "aXbYbZc", true}, {"a?c", "aéc", true},
	} {
		if got := wild(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q of %q: %t", tt.text, tt.pattern, got)
		}
	}
}

// An attestation that a public workflow made, with the promise of the public log.
func TestPublicAttestation(t *testing.T) {
	var recorded struct{ Envelope, Bundle json.RawMessage }
	text, err := os.ReadFile("testdata/attested.json")
	if err == nil {
		err = json.Unmarshal(text, &recorded)
	}
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := os.ReadFile("testdata/fulcio.pem")
	if err != nil {
		t.Fatal(err)
	}
	var forged crypto.PublicKey // in place of the keys of the logs of certificates
	sealed := func(k Keyless, envelopeText, bundle string) error {
		trust := trusted(t)
		for _, l := range trust.certificates {
			if forged != nil {
				l.PublicKey = forged
			}
		}
		v, err := NewVerifier(Attestor{Keyless: &k}, trust, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		var e dsse.Envelope
		if err := json.Unmarshal([]byte(envelopeText), &e); err != nil {
			t.Fatal(err)
		}
		payload, err := e.DecodeB64Payload()
		if err != nil {
			return err
		}
		l := layer{annotations: map[string]string{certificateKey: string(certificate), bundleKey: bundle}}
		return v.sealed(l, e, []byte(envelopeText), payload)
	}
	good := Keyless{Issuer: actions, Subject: "https://github.com/sigstore/*"}
	says(t, "as it was made", sealed(good, string(recorded.Envelope), string(recorded.Bundle)), "")
	key, _, err := readTimedKey(testregistry.NewSigner(t).PEM())
	if err != nil {
		t.Fatal(err)
	}
	forged = key
	says(t, "with a promise that the log of certificates did not sign", sealed(good, string(recorded.Envelope), string(recorded.Bundle)), "no log of certificates that is trusted knows of it")
	forged = nil
	says(t, "for another subject", sealed(Keyless{Issuer: actions, Subject: "https://github.com/acme/*"}, string(recorded.Envelope), string(recorded.Bundle)), "its subject is")
	says(t, "without the log", sealed(good, string(recorded.Envelope), ""), "no transparency log proof")
	moved := strings.Replace(string(recorded.Bundle), `"integratedTime": 16818`, `"integratedTime": 16819`, 1)
	says(t, "at another time", sealed(good, string(recorded.Envelope), moved), "not signed by the log")
	other := strings.Replace(string(recorded.Envelope), `"payload": "e`, `"payload": "f`, 1)
	if err := sealed(good, other, string(recorded.Bundle)); err == nil || other == string(recorded.Envelope) {
		t.Error("another payload is proven")
	}
}
