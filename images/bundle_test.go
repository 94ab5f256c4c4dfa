package images

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/test/testregistry"
)

func TestBundles(t *testing.T) {
	s := testregistry.New(t)
	root, other := testregistry.NewAuthority(t, nil, time.Hour), testregistry.NewAuthority(t, nil, time.Hour)
	log, otherLog := testregistry.NewSigner(t), testregistry.NewSigner(t)
	trust := trustIn(t, root, log)
	then := time.Now().Add(-30 * time.Minute)
	at := then.Add(time.Minute)
	image, another := s.Push("app:v1"), s.Push("app:v2")
	const slsa = "https://slsa.dev/provenance/v1"
	holder := func(by *testregistry.Authority, uri string) *testregistry.Authority {
		return testregistry.NewHolder(t, by, testregistry.Identity{URI: uri, Issuer: actions}, then)
	}
	ann := holder(root, workflow)
	signed := ann.Attestation(image, testregistry.CosignSign, `{}`).Data
	annotated := ann.Envelope(testregistry.Statement, fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","predicateType":%q,"subject":[{"digest":{"sha256":%q},"annotations":{"team":"a"}}],"predicate":{}}`,
		testregistry.CosignSign, strings.TrimPrefix(testregistry.Digest(image), "sha256:"))).Data
	elsewhere := ann.Attestation(another, testregistry.CosignSign, `{}`).Data
	good := testregistry.Bundle{Envelope: signed, Certificate: ann, Log: log, At: at}
	with := func(change func(*testregistry.Bundle)) testregistry.Bundle {
		b := good
		change(&b)
		return b
	}
	key := testregistry.NewSigner(t)
	byKey := testregistry.Bundle{Envelope: key.Attestation(image, testregistry.CosignSign, `{}`).Data, Log: log, At: at, Who: key.PEM()}
	exact := Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true}}
	ofKey := Attestor{Key: key.PEM(), Log: log.PEM()}
	tampered := strings.Replace(string(good.JSON()), `"payload":"ey`, `"payload":"eyA`, 1)
	for _, tt := range []struct {
		name     string
		bundles  [][]byte
		attestor Attestor
		want     string
	}{
		{"an identity", [][]byte{good.JSON()}, exact, ""},
		{"an identity by a pattern", [][]byte{good.JSON()}, Attestor{Keyless: &Keyless{Issuer: actions, Subject: "https://github.com/acme/*", IgnoreSCT: true}}, ""},
		{"an identity word by word", [][]byte{good.JSON()}, Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, SubjectRegExp: "acme", IgnoreSCT: true, Exact: true}}, ""},
		{"a pattern that is a word", [][]byte{good.JSON()}, Attestor{Keyless: &Keyless{Issuer: actions, Subject: "https://github.com/acme/*", IgnoreSCT: true, Exact: true}}, "its subject is"},
		{"an issuer's pattern that is a word", [][]byte{good.JSON()}, Attestor{Keyless: &Keyless{Issuer: "https://*", Subject: workflow, IgnoreSCT: true, Exact: true}}, "the issuer of its identity"},
		{"a word and another expression", [][]byte{good.JSON()}, Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, SubjectRegExp: "evil", IgnoreSCT: true, Exact: true}}, "its subject is"},
		{"another identity", [][]byte{with(func(b *testregistry.Bundle) { b.Certificate = holder(root, "https://github.com/evil/x") }).JSON()}, exact, "another key"},
		{"an identity of another", [][]byte{func() []byte {
			eve := holder(root, "https://github.com/evil/x")
			return testregistry.Bundle{Envelope: eve.Attestation(image, testregistry.CosignSign, `{}`).Data, Certificate: eve, Log: log, At: at}.JSON()
		}()}, exact, "its subject is"},
		{"another authority", [][]byte{func() []byte {
			eve := holder(other, workflow)
			return testregistry.Bundle{Envelope: eve.Attestation(image, testregistry.CosignSign, `{}`).Data, Certificate: eve, Log: log, At: at}.JSON()
		}()}, exact, "unknown authority"},
		{"no proof for certificates", [][]byte{good.JSON()}, Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow}}, "log"},
		{"of another image", [][]byte{with(func(b *testregistry.Bundle) { b.Envelope = elsewhere }).JSON()}, exact, "about another image"},
		{"no log", [][]byte{with(func(b *testregistry.Bundle) { b.Log = nil }).JSON()}, exact, "no transparency log proof"},
		{"another log", [][]byte{with(func(b *testregistry.Bundle) { b.Log = otherLog }).JSON()}, exact, "another log"},
		{"a log entry of another payload", [][]byte{with(func(b *testregistry.Bundle) { b.Entry = testregistry.EntryOfEnvelope(elsewhere, ann.Certificate()) }).JSON()}, exact, "signature does not match"},
		{"a log entry that names another payload", [][]byte{with(func(b *testregistry.Bundle) {
			b.Entry = strings.Replace(testregistry.EntryOfEnvelope(signed, ann.Certificate()), payloadHash(signed), payloadHash(elsewhere), 1)
		}).JSON()}, exact, "does not match envelope payload hash"},
		{"a log entry of another key", [][]byte{with(func(b *testregistry.Bundle) { b.Entry = testregistry.EntryOfEnvelope(signed, key.PEM()) }).JSON()}, exact, "certificate does not match"},
		{"a log entry of another kind", [][]byte{with(func(b *testregistry.Bundle) { b.Entry = `{"kind":"rpm"}` }).JSON()}, exact, "kind 'rpm'"},
		{"logged when the certificate had ended", [][]byte{with(func(b *testregistry.Bundle) { b.At = then.Add(20 * time.Minute) }).JSON()}, exact, "expired"},
		{"a payload that is another", [][]byte{[]byte(tampered)}, exact, "no bundle of"},
		{"a key", [][]byte{byKey.JSON()}, ofKey, ""},
		{"a key, without a log", [][]byte{testregistry.Bundle{Envelope: byKey.Envelope}.JSON()}, Attestor{Key: key.PEM(), IgnoreLog: true}, ""},
		{"another key", [][]byte{good.JSON()}, ofKey, "another key"},
		{"junk beside a good one", [][]byte{[]byte("{"), []byte(`{"mediaType":"x"}`), good.JSON()}, exact, ""},
		{"a bundle without an envelope", [][]byte{[]byte(`{"mediaType":"` + testregistry.BundleMedia + `"}`)}, exact, "has no envelope"},
		{"many entries", [][]byte{[]byte(`{"mediaType":"` + testregistry.BundleMedia + `","dsseEnvelope":{},"verificationMaterial":{"tlogEntries":[` + strings.Repeat("{},", 33) + `{}]}}`)}, exact, "more than 10 entries"},
		{"annotations", [][]byte{with(func(b *testregistry.Bundle) { b.Envelope = annotated }).JSON()}, Attestor{Keyless: exact.Keyless, Annotations: map[string]string{"team": "a"}}, ""},
		{"other annotations", [][]byte{with(func(b *testregistry.Bundle) { b.Envelope = annotated }).JSON()}, Attestor{Keyless: exact.Keyless, Annotations: map[string]string{"team": "b"}}, `annotation "team"`},
		{"what is built is signed", [][]byte{with(func(b *testregistry.Bundle) { b.Envelope = ann.Attestation(image, slsa, `{}`).Data }).JSON()}, exact, ""},
		{"extensions that it has not", [][]byte{good.JSON()}, Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true, Extensions: map[string]string{"githubWorkflowRef": "*"}}}, "extension githubWorkflowRef"},
		{"an extension", [][]byte{good.JSON()}, Attestor{Keyless: &Keyless{Issuer: actions, Subject: workflow, IgnoreSCT: true, Extensions: map[string]string{"oidcIssuer": "https://token.*"}}}, ""},
		{"none", nil, exact, "no bundle refers to"},
	} {
		r := testregistry.New(t)
		pushed := r.Copy(s, image)
		for _, b := range tt.bundles {
			r.Refer(pushed, testregistry.BundleMedia, b)
		}
		for _, format := range []Format{Bundles, AnyFormat} {
			tt.attestor.Format = format
			v, err := NewVerifier(tt.attestor, trust, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			says(t, fmt.Sprintf("%s (%s)", tt.name, format), v.Signed(t.Context(), local(), pin(t, pushed)), tt.want)
		}
		tt.attestor.Format = Layers
		v, err := NewVerifier(tt.attestor, trust, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		says(t, tt.name+" as layers", v.Signed(t.Context(), local(), pin(t, pushed)), "there are no signatures")
	}
}

// Each statement of a type must be the attestor's, in whichever format it is.
func TestAttestedByBundles(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	k, eve := testregistry.NewSigner(t), testregistry.NewSigner(t)
	const slsa, vuln = "https://slsa.dev/provenance/v1", "vuln"
	attested := func(by *testregistry.Signer, kind string) []byte {
		return testregistry.Bundle{Envelope: by.Attestation(image, kind, `{"a":1}`).Data}.JSON()
	}
	ask := func(what string, f Format, want string, count int) {
		t.Helper()
		got, err := verifier(t, Attestor{Key: k.PEM(), Format: f}).Attested(t.Context(), local(), pin(t, image), slsa)
		says(t, what, err, want)
		if len(got) != count {
			t.Errorf("%s: %d statements", what, len(got))
		}
	}
	ask("none", AnyFormat, "there are no attestations of", 0)
	s.Refer(image, testregistry.BundleMedia, attested(eve, vuln))
	ask("another type by another", Bundles, "no attestation of the type", 0)
	s.Refer(image, testregistry.BundleMedia, attested(k, slsa))
	ask("a bundle", Bundles, "", 1)
	ask("a bundle, in any format", AnyFormat, "", 1)
	ask("a bundle, as layers", Layers, "there are no attestations of", 0)
	s.Attach(image, "att", k.Attestation(image, slsa, `{}`))
	ask("both", AnyFormat, "", 2)
	s.Attach(image, "att", eve.Attestation(image, slsa, `{}`))
	ask("another's layer", AnyFormat, "another key", 0)
	s.Refer(image, testregistry.BundleMedia, attested(eve, slsa))
	ask("another's bundle", Bundles, "another key", 0)
	for i := range maxLayers {
		s.Refer(image, "application/x"+fmt.Sprint(i))
	}
	ask("many", Bundles, "50 at most are looked at", 0)
}

// No bit of a bundle can be another.
func TestBundleFlips(t *testing.T) {
	k, log := testregistry.NewSigner(t), testregistry.NewSigner(t)
	image := pin(t, "reg.test/app@sha256:"+strings.Repeat("a", 64))
	b := testregistry.Bundle{Envelope: k.Attestation(image.String(), "t", `{"a":"b"}`).Data, Log: log, At: time.Now(), Who: k.PEM()}.JSON()
	v := verifier(t, Attestor{Key: k.PEM(), Log: log.PEM(), Format: Bundles})
	verify := func(data []byte) error {
		l, e, err := readBundle(data)
		if err == nil {
			_, err = v.enveloped(l, e, nil, image, "t")
		}
		return err
	}
	if err := verify(b); err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(b, &read); err != nil {
		t.Fatal(err)
	}
	for _, path := range [][]string{{"dsseEnvelope", "payload"}, {"dsseEnvelope", "payloadType"}, {"dsseEnvelope", "signatures", "0", "sig"}, {"verificationMaterial", "tlogEntries", "0", "canonicalizedBody"}, {"verificationMaterial", "tlogEntries", "0", "inclusionPromise", "signedEntryTimestamp"}, {"verificationMaterial", "tlogEntries", "0", "integratedTime"}} {
		text, set := fieldAt(t, read, path)
		for i := range text {
			flipped := []byte(text)
			if flipped[i] ^= 1; flipped[i] == '=' || text[i] == '=' {
				continue // padding, which says nothing
			}
			set(string(flipped))
			data, err := json.Marshal(read)
			if err != nil {
				t.Fatal(err)
			}
			if last := i >= len(text)-3 && strings.HasSuffix(text, "="); verify(data) == nil && !last {
				t.Errorf("%v with byte %d as %q is proven", path, i, flipped[i])
			}
		}
		set(text)
	}
}

func fieldAt(t *testing.T, in any, path []string) (text string, set func(string)) {
	t.Helper()
	for i, key := range path {
		switch at := in.(type) {
		case map[string]any:
			if i == len(path)-1 {
				return at[key].(string), func(s string) { at[key] = s }
			}
			in = at[key]
		case []any:
			in = at[0]
		}
	}
	t.Fatal(path)
	return "", nil
}

func FuzzBundle(f *testing.F) {
	f.Add([]byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"certificate":{"rawBytes":"eA=="},"tlogEntries":[{"logIndex":"7","integratedTime":7,"logId":{"keyId":"eA=="}}]},"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"eA=="}]}}`))
	trust, err := PublicTrust()
	if err != nil {
		f.Fatal(err)
	}
	v, err := NewVerifier(Attestor{Keyless: &Keyless{Issuer: "a", Subject: "b"}}, trust, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	image, err := Pinned("reg.test/app@sha256:" + strings.Repeat("a", 64))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, e, err := readBundle(data)
		if err != nil {
			return
		}
		if _, err := v.enveloped(l, e, nil, image, ""); err == nil {
			t.Fatal("it is proven")
		}
	})
}

// payloadHash is what a log has of the payload of an envelope.
func payloadHash(envelope []byte) string {
	var e struct {
		Payload []byte `json:"payload"`
	}
	if json.Unmarshal(envelope, &e) != nil {
		return ""
	}
	return fmt.Sprintf("%x", sum(e.Payload))
}
