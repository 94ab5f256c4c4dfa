package images

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// An interop is what another program has signed: images/interop makes the layouts by cosign,
// sigstore-go and notation-go, which have verified them.
type interop struct {
	*testing.T
	dir      string
	image    Image
	registry Registry
	now      time.Time
}

func openInterop(t *testing.T, name string) interop {
	t.Helper()
	out := interop{T: t, dir: filepath.Join("testdata", "interop", name)}
	out.image = pin(t, "reg.test/app@"+strings.TrimSpace(out.file("digest")))
	out.registry = recordedAt(t, filepath.Join(out.dir, "registry"))
	var err error
	if out.now, err = time.Parse(time.RFC3339, strings.TrimSpace(out.file("time"))); err != nil {
		t.Fatal(err)
	}
	return out
}

func (i interop) file(name string) string {
	i.Helper()
	data, err := os.ReadFile(filepath.Join(i.dir, name))
	if err != nil {
		i.Fatal(err)
	}
	return string(data)
}

// verifier is of an attestor, at the time when the layout was made.
func (i interop) verifier(a Attestor) *Verifier {
	i.Helper()
	trust := &Trust{}
	if data, err := os.ReadFile(filepath.Join(i.dir, "trusted_root.json")); err == nil {
		if trust, err = ReadTrust(data); err != nil {
			i.Fatal(err)
		}
	}
	v, err := NewVerifier(a, trust, func() time.Time { return i.now })
	if err != nil {
		i.Fatal(err)
	}
	return v
}

const otherKey = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8nXRh950IZbRj8Ra/N9sbqOPZrfM\n5/KAQN0/KjHcorm/J5yctVd7iEcnessRQjU917hmKO6JWVGHpDguIyakZA==\n-----END PUBLIC KEY-----\n"

// What other programs sign is signed, and by nobody else.
func TestInterop(t *testing.T) {
	team, other := map[string]string{"team": "a"}, map[string]string{"team": "b"}
	ann := &Keyless{Subject: "ann@acme.io", Issuer: "https://acme.io", IgnoreSCT: true}
	for _, tt := range []struct {
		name string
		by   func(interop) Attestor
		want string
	}{
		{"cosign-key", func(i interop) Attestor { return Attestor{Key: i.file("key.pub"), IgnoreLog: true, Annotations: team} }, ""},
		{"cosign-key", func(i interop) Attestor { return Attestor{Key: i.file("key.pub"), IgnoreLog: true, Annotations: other} }, `annotation "team"`},
		{"cosign-key", func(i interop) Attestor { return Attestor{Key: i.file("key.pub")} }, "no transparency log proof"},
		{"cosign-key", func(interop) Attestor { return Attestor{Key: otherKey, IgnoreLog: true} }, "another key"},
		{"cosign-key-bundle", func(i interop) Attestor {
			return Attestor{Key: i.file("key.pub"), IgnoreLog: true, Annotations: team, Format: Bundles}
		}, ""},
		{"cosign-key-bundle", func(i interop) Attestor { return Attestor{Key: i.file("key.pub"), IgnoreLog: true, Format: AnyFormat} }, ""},
		{"cosign-key-bundle", func(i interop) Attestor {
			return Attestor{Key: i.file("key.pub"), IgnoreLog: true, Annotations: other, Format: Bundles}
		}, `annotation "team"`},
		{"cosign-key-bundle", func(interop) Attestor { return Attestor{Key: otherKey, IgnoreLog: true, Format: Bundles} }, "another key"},
		{"keyless-bundle", func(interop) Attestor { return Attestor{Keyless: ann, Format: Bundles} }, ""},
		{"keyless-bundle", func(interop) Attestor {
			return Attestor{Keyless: &Keyless{Subject: "eve@acme.io", IgnoreSCT: true}, Format: Bundles}
		}, "its subject is"},
		{"keyless-bundle-v2", func(interop) Attestor { return Attestor{Keyless: ann, Format: Bundles} }, ""},
		{"keyless-bundle-v2", func(interop) Attestor {
			return Attestor{Keyless: &Keyless{Issuer: "https://evil.io", IgnoreSCT: true}, Format: Bundles}
		}, "the issuer of its identity"},
		{"notation-jws", func(i interop) Attestor {
			return Attestor{Chain: i.file("root.pem"), Annotations: team, Format: Notation}
		}, ""},
		{"notation-jws", func(i interop) Attestor {
			return Attestor{Chain: i.file("root.pem"), Annotations: other, Format: Notation}
		}, `annotation "team"`},
		{"notation-cose", func(i interop) Attestor { return Attestor{Chain: i.file("root.pem"), Format: Notation} }, ""},
	} {
		i := openInterop(t, tt.name)
		says(t, tt.name, i.verifier(tt.by(i)).Signed(t.Context(), i.registry, i.image), tt.want)
	}
	attested := openInterop(t, "cosign-attest")
	v := attested.verifier(Attestor{Key: attested.file("key.pub"), IgnoreLog: true})
	found, err := v.Attested(t.Context(), attested.registry, attested.image, "https://acme.io/build")
	if err != nil || len(found) != 1 || found[0].Content["predicate"].(map[string]any)["builder"].(map[string]any)["id"] != "x" {
		t.Errorf("got %v %v", found, err)
	}
	_, err = v.Attested(t.Context(), attested.registry, attested.image, "https://acme.io/other")
	says(t, "another type", err, "https://acme.io/build")
	_, err = attested.verifier(Attestor{Key: otherKey, IgnoreLog: true}).Attested(t.Context(), attested.registry, attested.image, "https://acme.io/build")
	says(t, "attested by another", err, "another key")
	jws, cose := openInterop(t, "notation-jws"), openInterop(t, "notation-cose")
	says(t, "another authority", jws.verifier(Attestor{Chain: cose.file("root.pem"), Format: Notation}).Signed(t.Context(), jws.registry, jws.image), "not by the attestor's certificates")
	one, two := openInterop(t, "keyless-bundle"), openInterop(t, "keyless-bundle-v2")
	two.dir = one.dir
	says(t, "another trusted root", two.verifier(Attestor{Keyless: ann, Format: Bundles}).Signed(t.Context(), two.registry, two.image), "of another log")
}

// A thousand bits of what is signed, the other way each: nothing is proven then.
func TestInteropFlips(t *testing.T) {
	ann := &Keyless{Subject: "ann@acme.io", Issuer: "https://acme.io", IgnoreSCT: true}
	for _, tt := range []struct {
		name  string
		by    func(interop) Attestor
		paths []string // of what is flipped in the JSON: base64, or a text that ends with =
	}{
		{"cosign-key-bundle", func(i interop) Attestor { return Attestor{Key: i.file("key.pub"), IgnoreLog: true, Format: Bundles} },
			[]string{"dsseEnvelope.payload", "dsseEnvelope.signatures.sig"}},
		{"keyless-bundle", func(interop) Attestor { return Attestor{Keyless: ann, Format: Bundles} },
			[]string{"dsseEnvelope.payload", "dsseEnvelope.signatures.sig", "verificationMaterial.certificate.rawBytes", "verificationMaterial.tlogEntries.canonicalizedBody", "verificationMaterial.tlogEntries.inclusionPromise.signedEntryTimestamp"}},
		{"keyless-bundle-v2", func(interop) Attestor { return Attestor{Keyless: ann, Format: Bundles} },
			[]string{"dsseEnvelope.payload", "dsseEnvelope.signatures.sig", "verificationMaterial.certificate.rawBytes", "verificationMaterial.tlogEntries.canonicalizedBody", "verificationMaterial.tlogEntries.inclusionProof.checkpoint.envelope="}},
		{"cosign-attest", func(i interop) Attestor { return Attestor{Key: i.file("key.pub"), IgnoreLog: true} }, []string{"payload", "signatures.sig"}},
	} {
		i := openInterop(t, tt.name)
		v := i.verifier(tt.by(i))
		data := i.envelope(v)
		proven := func(data []byte) bool {
			var err error
			if v.attestor.Format == Bundles {
				var l layer
				var e dsse.Envelope
				if l, e, err = readBundle(data); err == nil {
					_, err = v.enveloped(l, e, nil, i.image, "")
				}
			} else {
				var e dsse.Envelope
				if err = json.Unmarshal(data, &e); err == nil {
					_, err = v.enveloped(layer{}, e, data, i.image, "")
				}
			}
			return err == nil
		}
		if !proven(data) {
			t.Fatalf("%s is not proven", tt.name)
		}
		const flips = 1000
		for _, path := range tt.paths {
			bits := 8 * len(flipped(t, data, path, -1))
			for n := range min(bits, flips/len(tt.paths)) {
				at := n * bits / min(bits, flips/len(tt.paths))
				if proven(flipped(t, data, path, at)) {
					t.Errorf("%s: %s with bit %d the other way is proven", tt.name, path, at)
				}
			}
		}
	}
}

// envelope is the one layer of what is signed.
func (i interop) envelope(v *Verifier) []byte {
	i.Helper()
	layers, err := v.bundles(i.Context(), i.registry, i.image)
	if v.attestor.Format != Bundles {
		layers, err = v.layers(i.Context(), i.registry, i.image, "att")
	}
	if err != nil {
		i.Fatal(err)
	}
	data, done, err := layers[0].read(maxAttestation)
	defer done()
	if err != nil {
		i.Fatal(err)
	}
	return data
}

// flipped is a document with a bit at a path the other way; what is at the path where at is -1. Of
// lists it is the first.
func flipped(t *testing.T, document []byte, path string, at int) []byte {
	t.Helper()
	var whole any
	if err := json.Unmarshal(document, &whole); err != nil {
		t.Fatal(err)
	}
	plain := strings.HasSuffix(path, "=")
	steps := strings.Split(strings.TrimSuffix(path, "="), ".")
	in, last := whole, steps[len(steps)-1]
	for _, step := range steps[:len(steps)-1] {
		in = in.(map[string]any)[step]
		if list, ok := in.([]any); ok {
			in = list[0]
		}
	}
	text := in.(map[string]any)[last].(string)
	data := []byte(text)
	if !plain {
		var err error
		if data, err = base64.StdEncoding.DecodeString(text); err != nil {
			t.Fatal(err)
		}
	}
	if at < 0 {
		return data
	}
	data = bytes.Clone(data)
	data[at/8] ^= 1 << (at % 8)
	if in.(map[string]any)[last] = any(string(data)); !plain {
		in.(map[string]any)[last] = base64.StdEncoding.EncodeToString(data)
	}
	out, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Of the layers of signatures and the envelopes of Notary too.
func TestInteropFlipsOfLayers(t *testing.T) {
	i := openInterop(t, "cosign-key")
	v := i.verifier(Attestor{Key: i.file("key.pub"), IgnoreLog: true})
	layers, err := v.layers(t.Context(), i.registry, i.image, "sig")
	if err != nil {
		t.Fatal(err)
	}
	data, done, err := layers[0].read(maxPayload)
	defer done()
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(layers[0].annotations[signatureKey])
	if err != nil || v.message(layers[0], data, signature) != nil {
		t.Fatal(err)
	}
	flips := func(what string, data []byte, proven func([]byte) bool) {
		t.Helper()
		bits := 8 * len(data)
		for n := range min(bits, 1000) {
			at := n * bits / min(bits, 1000)
			changed := bytes.Clone(data)
			changed[at/8] ^= 1 << (at % 8)
			if proven(changed) {
				t.Errorf("%s with bit %d the other way is proven", what, at)
			}
		}
	}
	flips("the payload", data, func(data []byte) bool { return v.message(layers[0], data, signature) == nil })
	flips("the signature", signature, func(signature []byte) bool {
		return v.message(layers[0], data, signature) == nil
	})
	for _, name := range []string{"notation-jws", "notation-cose"} {
		i := openInterop(t, name)
		v := i.verifier(Attestor{Chain: i.file("root.pem"), Format: Notation})
		at, err := repositoryNamed("reg.test/app", i.registry)
		if err != nil {
			t.Fatal(err)
		}
		target, err := i.registry.manifest(t.Context(), at.Digest(i.image.Digest()))
		if err != nil {
			t.Fatal(err)
		}
		layers, err := i.registry.referrers(t.Context(), at.Digest(i.image.Digest()), func(media string) bool { return media == notationMedia })
		if err != nil || len(layers) != 1 {
			t.Fatal(layers, err)
		}
		data, done, err := layers[0].read(maxNotation)
		defer done()
		if err != nil || v.notation(data, layers[0].media, target) != nil {
			t.Fatal(err)
		}
		if name == "notation-cose" {
			// Its first half is what is signed, and the headers behind that, which are not, have who signs.
			signed := bytes.Index(data, []byte(i.image.Digest()))
			if signed < 0 {
				t.Fatal("it names no digest")
			}
			flips(name, data[signed:signed+len(i.image.Digest())], func(changed []byte) bool {
				return v.notation(bytes.Replace(data, data[signed:signed+len(changed)], changed, 1), layers[0].media, target) == nil
			})
			continue
		}
		var e map[string]any
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"payload", "protected", "signature"} {
			decoded, err := base64.RawURLEncoding.DecodeString(e[key].(string))
			if err != nil {
				t.Fatal(err)
			}
			flips(name+" "+key, decoded, func(changed []byte) bool {
				before := e[key]
				defer func() { e[key] = before }()
				e[key] = base64.RawURLEncoding.EncodeToString(changed)
				document, _ := json.Marshal(e)
				return v.notation(document, layers[0].media, target) == nil
			})
		}
	}
}
