package testregistry

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// A Tree is a log of the second kind (Rekor v2): it promises nothing, and signs the hash of all
// that it has.
type Tree struct {
	*Signer
	Origin string
	// Before and After are how many entries it has in front of the one that is asked about, and
	// behind it.
	Before, After int
}

// rootOf is the hash of a tree (RFC 6962, 2.1).
func rootOf(leaves [][]byte) []byte {
	if len(leaves) == 1 {
		h := sha256.Sum256(append([]byte{0}, leaves[0]...))
		return h[:]
	}
	half := halfOf(len(leaves))
	h := sha256.Sum256(append(append([]byte{1}, rootOf(leaves[:half])...), rootOf(leaves[half:])...))
	return h[:]
}

// halfOf is the largest power of two below a number.
func halfOf(count int) int {
	half := 1
	for 2*half < count {
		half *= 2
	}
	return half
}

// pathTo is the proof that a leaf is in a tree (RFC 6962, 2.1.1).
func pathTo(index int, leaves [][]byte) [][]byte {
	if len(leaves) == 1 {
		return nil
	}
	half := halfOf(len(leaves))
	if index < half {
		return append(pathTo(index, leaves[:half]), rootOf(leaves[half:]))
	}
	return append(pathTo(index-half, leaves[half:]), rootOf(leaves[:half]))
}

// Checkpoint is the signed note of a tree of leaves.
func (t Tree) Checkpoint(size int, root []byte) string {
	text := fmt.Sprintf("%s\n%d\n%s\n", t.Origin, size, base64.StdEncoding.EncodeToString(root))
	if _, ok := t.key.(*ecdsa.PrivateKey); !ok && t.hash != crypto.SHA256 {
		t.t.Fatal("no such log")
	}
	return fmt.Sprintf("%s\n— %s %s\n", text, t.Origin, base64.StdEncoding.EncodeToString(append(t.id()[:4:4], t.Sign([]byte(text))...)))
}

// id is the name of the log, which is of its key and its origin.
func (t Tree) id() []byte {
	key, ok := t.key.Public().(ed25519.PublicKey)
	if !ok {
		return t.Signer.id()
	}
	id := sha256.Sum256(append([]byte(t.Origin+"\n\x01"), key...))
	return id[:]
}

// Entry is what a bundle has of the log about an entry.
func (t Tree) Entry(body string) map[string]any {
	t.t.Helper()
	var leaves [][]byte
	for i := range t.Before + 1 + t.After {
		leaves = append(leaves, fmt.Appendf(nil, "leaf %d", i))
	}
	leaves[t.Before] = []byte(body)
	root := rootOf(leaves)
	return map[string]any{
		"logIndex": fmt.Sprint(t.Before), "logId": map[string]any{"keyId": t.id()}, "kindVersion": map[string]any{"kind": "hashedrekord", "version": "0.0.2"}, "canonicalizedBody": []byte(body), "integratedTime": "0",
		"inclusionProof": map[string]any{
			"logIndex": fmt.Sprint(t.Before), "treeSize": fmt.Sprint(len(leaves)), "rootHash": root, "hashes": pathTo(t.Before, leaves),
			"checkpoint": map[string]any{"envelope": t.Checkpoint(len(leaves), root)},
		},
	}
}

// Record is the entry of such a log about an envelope, by whoever has a certificate, or else a key.
func Record(envelope []byte, certificate *Authority, key *Signer) string {
	media, payload, signature := partsOf(envelope)
	hash := sha256.Sum256(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(media), media, len(payload), payload))
	return fmt.Sprintf(`{"apiVersion":"0.0.2","kind":"hashedrekord","spec":{"hashedRekordV002":{"data":{"algorithm":"SHA2_256","digest":%q},"signature":{"content":%q,"verifier":%s}}}}`,
		base64.StdEncoding.EncodeToString(hash[:]), signature, verifierOf(certificate, key))
}

// RecordOfEnvelope is the same in the form for envelopes.
func RecordOfEnvelope(envelope []byte, certificate *Authority, key *Signer) string {
	_, payload, signature := partsOf(envelope)
	hash := sha256.Sum256(payload)
	return fmt.Sprintf(`{"apiVersion":"0.0.2","kind":"dsse","spec":{"dsseV002":{"payloadHash":{"algorithm":"SHA2_256","digest":%q},"signatures":[{"content":%q,"verifier":%s}]}}}`,
		base64.StdEncoding.EncodeToString(hash[:]), signature, verifierOf(certificate, key))
}

func partsOf(envelope []byte) (media string, payload []byte, signature string) {
	var e struct {
		Type       string `json:"payloadType"`
		Payload    []byte `json:"payload"`
		Signatures []struct {
			Signature string `json:"sig"`
		} `json:"signatures"`
	}
	_ = json.Unmarshal(envelope, &e)
	return e.Type, e.Payload, e.Signatures[0].Signature
}

func verifierOf(certificate *Authority, key *Signer) string {
	if certificate != nil {
		return fmt.Sprintf(`{"keyDetails":"PKIX_ECDSA_P256_SHA_256","x509Certificate":{"rawBytes":%q}}`, base64.StdEncoding.EncodeToString(certificate.Raw()))
	}
	return fmt.Sprintf(`{"keyDetails":"PKIX_ECDSA_P256_SHA_256","publicKey":{"rawBytes":%q}}`, base64.StdEncoding.EncodeToString(key.der()))
}

// TrustedRootOf is a trusted root of Sigstore of an authority, a log of the second kind, and a
// timestamp authority under a root.
func TrustedRootOf(root *Authority, log Tree, url string, stamps *Authority) []byte {
	since := map[string]any{"start": time.Now().Add(-24 * time.Hour)}
	chain := func(a *Authority) map[string]any {
		return map[string]any{"validFor": since, "certChain": map[string]any{"certificates": []any{map[string]any{"rawBytes": a.Raw()}}}}
	}
	text, _ := json.Marshal(map[string]any{
		"tlogs":                  []any{logOf(log.Signer, log.id(), url, since)},
		"certificateAuthorities": []any{chain(root)}, "timestampAuthorities": []any{chain(stamps)},
	})
	return text
}
