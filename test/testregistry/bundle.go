package testregistry

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// BundleMedia is the type of a bundle of Sigstore.
const BundleMedia = "application/vnd.dev.sigstore.bundle.v0.3+json"

// CosignSign is what is said of an image that is signed by a bundle.
const CosignSign = "https://sigstore.dev/cosign/sign/v1"

// A Bundle is what a bundle of Sigstore is made of.
type Bundle struct {
	Envelope    []byte     // as Signer.Envelope makes it
	Certificate *Authority // of who signed; nil of a key
	Log         *Signer    // that knows of it; nil of none
	At          time.Time  // when the log took it in
	Who         string     // the PEM that the log has of who signed
	Stamps      [][]byte   // answers of timestamp authorities
	// Entry is what the log has in place of what it should.
	Entry string
	// Trees are entries of logs of the second kind.
	Trees []map[string]any
}

// JSON is the bundle as it is stored.
func (b Bundle) JSON() []byte {
	material := map[string]any{"publicKey": map[string]any{"hint": "x"}}
	if b.Certificate != nil {
		material = map[string]any{"certificate": map[string]any{"rawBytes": b.Certificate.Raw()}}
		b.Who = b.Certificate.Certificate()
	}
	if b.Stamps != nil {
		var answers []any
		for _, s := range b.Stamps {
			answers = append(answers, map[string]any{"signedTimestamp": s})
		}
		material["timestampVerificationData"] = map[string]any{"rfc3161Timestamps": answers}
	}
	var envelope map[string]any
	_ = json.Unmarshal(b.Envelope, &envelope)
	if b.Log != nil {
		id := b.Log.id()
		entry := b.Entry
		if entry == "" {
			entry = EntryOfEnvelope(b.Envelope, b.Who)
		}
		body := base64.StdEncoding.EncodeToString([]byte(entry))
		promised := fmt.Appendf(nil, `{"body":%q,"integratedTime":%d,"logID":%q,"logIndex":7}`, body, b.At.Unix(), hex.EncodeToString(id))
		material["tlogEntries"] = []any{map[string]any{
			"logIndex": "7", "logId": map[string]any{"keyId": id}, "kindVersion": map[string]any{"kind": "dsse", "version": "0.0.1"},
			"integratedTime": fmt.Sprint(b.At.Unix()), "inclusionPromise": map[string]any{"signedEntryTimestamp": b.Log.Sign(promised)}, "canonicalizedBody": body,
		}}
	}
	if b.Trees != nil {
		entries, _ := material["tlogEntries"].([]any)
		for _, e := range b.Trees {
			entries = append(entries, e)
		}
		material["tlogEntries"] = entries
	}
	out, _ := json.Marshal(map[string]any{"mediaType": BundleMedia, "verificationMaterial": material, "dsseEnvelope": envelope})
	return out
}

// EntryOfEnvelope is the entry that a log has of an envelope by a key or certificate.
func EntryOfEnvelope(envelope []byte, who string) string {
	var e struct {
		Payload    []byte `json:"payload"`
		Signatures []struct {
			Signature string `json:"sig"`
		} `json:"signatures"`
	}
	_ = json.Unmarshal(envelope, &e)
	payload, whole := sha256.Sum256(e.Payload), sha256.Sum256(envelope)
	return fmt.Sprintf(`{"apiVersion":"0.0.1","kind":"dsse","spec":{"envelopeHash":{"algorithm":"sha256","value":%q},"payloadHash":{"algorithm":"sha256","value":%q},"signatures":[{"signature":%q,"verifier":%q}]}}`,
		hex.EncodeToString(whole[:]), hex.EncodeToString(payload[:]), e.Signatures[0].Signature, base64.StdEncoding.EncodeToString([]byte(who)))
}

// Refer puts an artifact of a type, with layers, into the repository of an image that is pinned,
// so that it refers to the image.
func (r *Registry) Refer(pinned, media string, layers ...[]byte) {
	r.t.Helper()
	r.ReferAs(pinned, media, media, layers...)
}

// ReferAs is Refer with layers of a type of their own. The artifact is known as Push's images are.
func (r *Registry) ReferAs(pinned, media, ofLayers string, layers ...[]byte) string {
	r.t.Helper()
	repository, digest, _ := strings.Cut(pinned, "@")
	of, err := v1.NewHash(digest)
	if err != nil {
		r.t.Fatal(err)
	}
	one := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.MediaType(media))
	for _, data := range layers {
		if one, err = mutate.AppendLayers(one, static.NewLayer(data, types.MediaType(ofLayers))); err != nil {
			r.t.Fatal(err)
		}
	}
	artifact, ok := mutate.Subject(one, v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: of, Size: 1}).(v1.Image)
	if !ok {
		r.t.Fatal("it is no image")
	}
	made, err := artifact.Digest()
	if err != nil {
		r.t.Fatal(err)
	}
	at, err := name.NewDigest(repository+"@"+made.String(), name.Insecure)
	if err == nil {
		err = remote.Write(at, artifact)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return repository + "@" + made.String()
}

// Copy has an image of another registry, with its digest.
func (r *Registry) Copy(from *Registry, pinned string) string {
	r.t.Helper()
	return r.copied(pinned, r.Host+strings.TrimPrefix(pinned, from.Host))
}

// CopyTo has an image of it in another repository too.
func (r *Registry) CopyTo(pinned, repository string) string {
	r.t.Helper()
	return r.copied(pinned, r.Host+"/"+repository+"@"+Digest(pinned))
}

func (r *Registry) copied(pinned, to string) string {
	r.t.Helper()
	source, err := name.NewDigest(pinned, name.Insecure)
	if err != nil {
		r.t.Fatal(err)
	}
	one, err := remote.Image(source)
	if err != nil {
		r.t.Fatal(err)
	}
	at, err := name.NewDigest(to, name.Insecure)
	if err == nil {
		err = remote.Write(at, one)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return to
}

// TrustedRoot is a trusted root of Sigstore of an authority and a log, which are trusted since a day.
func TrustedRoot(t testing.TB, root *Authority, log *Signer) []byte {
	t.Helper()
	since := map[string]any{"start": time.Now().Add(-24 * time.Hour)}
	text, err := json.Marshal(map[string]any{
		"tlogs": []any{logOf(log, log.id(), "", since)},
		"certificateAuthorities": []any{map[string]any{
			"validFor": since, "certChain": map[string]any{"certificates": []any{map[string]any{"rawBytes": root.Raw()}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// logOf is a log in a trusted root, by its name.
func logOf(log *Signer, id []byte, url string, since map[string]any) map[string]any {
	details := map[bool]string{true: "PKIX_ED25519", false: "PKIX_ECDSA_P256_SHA_256"}
	_, edwards := log.key.(ed25519.PrivateKey)
	return map[string]any{
		"baseUrl": url, "hashAlgorithm": "SHA2_256", "logId": map[string]any{"keyId": id},
		"publicKey": map[string]any{"rawBytes": log.der(), "keyDetails": details[edwards], "validFor": since},
	}
}

// id is the name of a log with the key.
func (s *Signer) id() []byte {
	id := sha256.Sum256(s.der())
	return id[:]
}
