package images

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/test/testregistry"
)

func TestAttested(t *testing.T) {
	s := testregistry.New(t)
	k, other := testregistry.NewSigner(t), testregistry.NewSigner(t)
	image, another := s.Push("app:v1"), s.Push("app:v2")
	const slsa, vuln = "https://slsa.dev/provenance/v0.2", "cosign.sigstore.dev/attestation/vuln/v1"
	good := k.Attestation(image, slsa, `{"builder":{"id":"x"},"n":1234567890123456}`)
	statement := func(kind string) []byte {
		return fmt.Appendf(nil, `{"_type":%q,"predicateType":%q,"subject":[{"digest":{"sha256":%q}}],"predicate":{}}`, kind, slsa, strings.TrimPrefix(testregistry.Digest(image), "sha256:"))
	}
	many := fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","predicateType":%q,"subject":[%s{"digest":{"sha256":%q}}],"predicate":{}}`,
		slsa, strings.Repeat(`{},`, maxSubjects), strings.TrimPrefix(testregistry.Digest(image), "sha256:"))
	unsigned := func() testregistry.Layer {
		var e map[string]any
		if err := json.Unmarshal(good.Data, &e); err != nil {
			t.Fatal(err)
		}
		e["signatures"] = []any{}
		data, _ := json.Marshal(e)
		return testregistry.Layer{Data: data}
	}()
	for _, tt := range []struct {
		name   string
		beside []testregistry.Layer
		want   string
		count  int
	}{
		{"one", []testregistry.Layer{good}, "", 1},
		{"two", []testregistry.Layer{good, good}, "", 2},
		{"one beside another type by somebody", []testregistry.Layer{other.Attestation(image, vuln, `{}`), good}, "", 1},
		{"one beside the same type by somebody", []testregistry.Layer{good, other.Attestation(image, slsa, `{}`)}, "another key", 0},
		{"another type", []testregistry.Layer{k.Attestation(image, vuln, `{}`)}, "no attestation of the type " + slsa, 0},
		{"of another image", []testregistry.Layer{k.Attestation(another, slsa, `{}`)}, "about another image", 0},
		{"another payload type", []testregistry.Layer{k.Envelope("text/plain", statement("https://in-toto.io/Statement/v1"))}, "no in-toto statement", 0},
		{"no statement", []testregistry.Layer{k.Envelope(testregistry.Statement, statement("x"))}, "no in-toto statement", 0},
		{"the annotation says the type", []testregistry.Layer{{Data: k.Attestation(image, vuln, `{}`).Data, Annotations: map[string]string{"predicateType": slsa}}}, "no attestation of the type", 0},
		{"no JSON", []testregistry.Layer{{Data: []byte("{")}}, "no JSON", 0},
		{"no signature", []testregistry.Layer{unsigned}, "it has no signature", 0},
		{"many subjects", []testregistry.Layer{k.Envelope(testregistry.Statement, many)}, "more than 1024 subjects", 0},
		{"the payload is none", []testregistry.Layer{k.Envelope(testregistry.Statement, []byte("[]"))}, "no JSON", 0},
	} {
		s.Attach(image, "att", tt.beside...)
		got, err := verifier(t, Attestor{Key: k.PEM()}).Attested(t.Context(), local(), pin(t, image), slsa)
		says(t, tt.name, err, tt.want)
		if len(got) != tt.count {
			t.Errorf("%s: %d statements", tt.name, len(got))
		}
		if tt.name == "one" && len(got) == 1 && fmt.Sprint(got[0].Predicate()) != "map[builder:map[id:x] n:1234567890123456]" {
			t.Errorf("the predicate is %v", got[0].Predicate())
		}
	}
	says(t, "none", func() error {
		_, err := verifier(t, Attestor{Key: k.PEM()}).Attested(t.Context(), local(), pin(t, another), slsa)
		return err
	}(), "there are no attestations of")
}

// A log's entry of an attestation is of its envelope, in each of the forms that cosign made.
func TestLoggedAttestations(t *testing.T) {
	s := testregistry.New(t)
	image := s.Push("app:v1")
	k, other, log := testregistry.NewSigner(t), testregistry.NewSigner(t), testregistry.NewSigner(t)
	good, again := k.Attestation(image, "slsa", `{}`), k.Attestation(image, "slsa", `{}`)
	good.Annotations = map[string]string{}
	whole := func(of testregistry.Layer, who string) string {
		return fmt.Sprintf(`{"apiVersion":"0.0.1","kind":"intoto","spec":{"content":{"hash":{"algorithm":"sha256","value":"%x"}},"publicKey":%q}}`, sum(of.Data), base64.StdEncoding.EncodeToString([]byte(who)))
	}
	for _, tt := range []struct{ name, entry, want string }{
		{"dsse", testregistry.EntryOfEnvelope(good.Data, k.PEM()), ""},
		{"dsse of another signature", testregistry.EntryOfEnvelope(again.Data, k.PEM()), "signature does not match"},
		{"dsse of another key", testregistry.EntryOfEnvelope(good.Data, other.PEM()), "certificate does not match"},
		{"the whole envelope", whole(good, k.PEM()), ""},
		{"the whole of another", whole(again, k.PEM()), "another payload"},
		{"the whole envelope, of another key", whole(good, other.PEM()), "another key"},
		{"the whole envelope, of no key", whole(good, "x"), "another key"},
		{"the whole envelope by another hash", strings.Replace(whole(good, k.PEM()), "sha256", "sha1", 1), "another payload"},
	} {
		s.Attach(image, "att", log.Logged(good, tt.entry, time.Now()))
		_, err := verifier(t, Attestor{Key: k.PEM(), Log: log.PEM()}).Attested(t.Context(), local(), pin(t, image), "slsa")
		says(t, tt.name, err, tt.want)
	}
}

// A single bit that is another is never proven.
func TestFlips(t *testing.T) {
	k := testregistry.NewSigner(t)
	v := verifier(t, Attestor{Key: k.PEM()})
	good := k.Signature("reg.test/app@sha256:"+strings.Repeat("a", 64), map[string]string{"a": "1"})
	signature, err := base64.StdEncoding.DecodeString(good.Annotations[testregistry.SignatureKey])
	if err != nil {
		t.Fatal(err)
	}
	if err := v.message(layer{}, good.Data, signature); err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(good.Data) {
		data := []byte(string(good.Data))
		data[i/8] ^= 1 << (i % 8)
		if v.message(layer{}, data, signature) == nil {
			t.Fatalf("the payload with bit %d the other way is proven", i)
		}
	}
	for i := range 8 * len(signature) {
		flipped := []byte(string(signature))
		flipped[i/8] ^= 1 << (i % 8)
		if v.message(layer{}, good.Data, flipped) == nil {
			t.Fatalf("the signature with bit %d the other way is proven", i)
		}
	}
}

// What somebody attests makes no long message.
func TestTypesInMessages(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	var layers []testregistry.Layer
	for i := range 20 {
		layers = append(layers, testregistry.NewSigner(t).Attestation(image, strings.Repeat(fmt.Sprint(i), 100_000), `{}`))
	}
	s.Attach(image, "att", layers...)
	_, err := verifier(t, Attestor{Key: k.PEM()}).Attested(t.Context(), local(), pin(t, image), "slsa")
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("%d bytes of an error", len(fmt.Sprint(err)))
	}
}

// A predicate is read when it is known whose it is.
func TestPredicateOfSomebody(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	predicate := "[" + strings.Repeat("{},", 100_000) + "{}]"
	for kind, want := range map[string]string{"slsa": "another key", "vuln": "no attestation of the type"} {
		s.Attach(image, "att", testregistry.NewSigner(t).Attestation(image, kind, predicate))
		v := verifier(t, Attestor{Key: k.PEM()})
		made := testing.AllocsPerRun(1, func() {
			_, err := v.Attested(t.Context(), local(), pin(t, image), "slsa")
			says(t, kind, err, want)
		})
		if made > 50_000 {
			t.Errorf("%s: %.0f allocations", kind, made)
		}
	}
}

func TestBoundRepository(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	repository, digest, _ := strings.Cut(image, "@")
	signed := func(names string) testregistry.Layer {
		data := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q}}}`, names, digest)
		return testregistry.Layer{Data: data, Annotations: map[string]string{testregistry.SignatureKey: base64.StdEncoding.EncodeToString(k.Sign(data))}}
	}
	attested := func(names string) testregistry.Layer {
		return k.Envelope(testregistry.Statement, fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","predicateType":"t","subject":[{"name":%q,"digest":{"sha256":%q}}],"predicate":{}}`, names, strings.TrimPrefix(digest, "sha256:")))
	}
	bound, free := verifier(t, Attestor{Key: k.PEM(), Bound: true}), verifier(t, Attestor{Key: k.PEM()})
	for names, ok := range map[string]bool{repository: true, repository + ":v1": true, image: true, s.Host + "/other": false, "": false, "x": false, "UPPER/x": false} {
		want := "(--bind-repository)"
		if ok {
			want = ""
		}
		s.Attach(image, "sig", signed(names))
		s.Attach(image, "att", attested(names))
		says(t, "signed for "+names, bound.Signed(t.Context(), local(), pin(t, image)), want)
		says(t, "signed for "+names+", which is not asked", free.Signed(t.Context(), local(), pin(t, image)), "")
		_, err := bound.Attested(t.Context(), local(), pin(t, image), "t")
		says(t, "attested of "+names, err, want)
	}
	_, err := NewVerifier(Attestor{Format: Notation, Bound: true, Chain: testregistry.NewRoot(t).Certificate()}, trusted(t), time.Now)
	says(t, "Notary", err, "name no repository")
}

// All that is attested is held at once, so that it has a bound together.
func TestAttestedTogether(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	large := `"` + strings.Repeat("x", 6<<20) + `"`
	var layers []testregistry.Layer
	for i := range 4 {
		layers = append(layers, k.Attestation(image, "slsa", large))
		s.Attach(image, "att", layers...)
		_, err := verifier(t, Attestor{Key: k.PEM()}).Attested(t.Context(), local(), pin(t, image), "slsa")
		want := ""
		if i == 3 {
			want = "bytes together"
		}
		says(t, fmt.Sprint(i+1), err, want)
	}
}
