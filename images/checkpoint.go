package images

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A log of the second kind (Rekor v2) promises nothing. What it signs is a checkpoint, which is the
// hash of all that it had at some time, and beside it is proven that an entry is among that. It
// signs no time, so a timestamp authority says when the signature was made.
//
//	tlogEntries:
//	- logIndex: "7"
//	  canonicalizedBody: eyJhcGlWZXJzaW9u…                                the entry
//	  inclusionProof: {hashes: [MII…], checkpoint: {envelope: "…"}}
//
//	log2025-1.rekor.sigstore.dev      the origin
//	8                                 how many entries it had
//	hqF0…                             the hash of all
//
//	— log2025-1.rekor.sigstore.dev zxGZ…
type includedEntry struct {
	index      int64
	body       []byte
	hashes     [][]byte
	checkpoint string
}

const (
	maxCheckpoint  = 16 << 10
	maxCosigners   = 16 // who may have signed a checkpoint
	maxProofHashes = 64
)

// includes is nil if one of the logs has one of some entries, and it names what is signed, the
// signature and who signed.
func includes(logs []*logKey, entries []includedEntry, kind entryKind, data, logged, signature []byte, key crypto.PublicKey, certificate string) (*logKey, error) {
	err := errNoProof
	for _, e := range entries {
		var l *logKey
		if l, err = e.in(logs); err != nil {
			continue
		}
		if err = e.names(kind, data, logged, signature, key, certificate); err == nil {
			return l, nil
		}
	}
	return nil, err
}

// in is the log that has the entry.
func (e includedEntry) in(logs []*logKey) (*logKey, error) {
	c, err := readCheckpoint(e.checkpoint)
	if err != nil {
		return nil, fmt.Errorf("its log proof: %w", err)
	}
	for _, l := range logs {
		if l.origin != "" && l.origin != c.origin || !c.signedBy(l) {
			continue
		}
		if root, err := rootOf(e.index, c.size, leafHash(e.body), e.hashes); err != nil || !bytes.Equal(root, c.root) {
			return nil, errors.New("its log proof does not show that the log has its entry")
		}
		return l, nil
	}
	return nil, errors.New("its log proof is of another log")
}

// A checkpoint is what a log signs.
type checkpoint struct {
	text       []byte // which is signed
	origin     string
	size       int64
	root       []byte
	signatures []checkpointSignature
}

type checkpointSignature struct {
	name      string
	keyHash   uint32
	signature []byte
}

// readCheckpoint reads a signed note (C2SP) that is a checkpoint.
func readCheckpoint(note string) (checkpoint, error) {
	var out checkpoint
	bad := func(what string) (checkpoint, error) { return out, errors.New("the checkpoint " + what) }
	if len(note) > maxCheckpoint {
		return bad(fmt.Sprintf("has more than %d bytes", maxCheckpoint))
	}
	if !utf8.ValidString(note) || strings.ContainsFunc(note, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
		return bad("is no text")
	}
	end := strings.LastIndex(note, "\n\n")
	if end < 0 || !strings.HasSuffix(note, "\n") {
		return bad("has no signature")
	}
	out.text = []byte(note[:end+1])
	for line := range strings.Lines(note[end+2:]) {
		name, encoded, found := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "— "), "\n"), " ")
		data, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !found || !strings.HasPrefix(line, "— ") || err != nil || len(data) < 5 || len(out.signatures) >= maxCosigners {
			return bad("has a signature that cannot be read")
		}
		out.signatures = append(out.signatures, checkpointSignature{name, binary.BigEndian.Uint32(data), data[4:]})
	}
	lines := strings.Split(note[:end], "\n")
	if len(lines) < 3 || lines[0] == "" {
		return bad("has no origin, size and hash")
	}
	var err error
	out.origin = lines[0]
	if out.size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || out.size < 0 || strconv.FormatInt(out.size, 10) != lines[1] {
		return bad("has no size")
	}
	if out.root, err = base64.StdEncoding.Strict().DecodeString(lines[2]); err != nil || len(out.root) != sha256.Size {
		return bad("has no hash")
	}
	return out, nil
}

// signedBy tells whether a log signed the checkpoint, by its origin's name.
func (c checkpoint) signedBy(l *logKey) bool {
	id, ok := l.noteHash(c.origin)
	if !ok {
		return false
	}
	for _, s := range c.signatures {
		if s.name == c.origin && s.keyHash == id && l.signs(c.text, s.signature) {
			return true
		}
	}
	return false
}

// noteHash is how the signature of a note names the key.
func (l *logKey) noteHash(origin string) (uint32, bool) {
	var id []byte
	switch key := l.key.(type) {
	case ed25519.PublicKey:
		id = sum(append([]byte(origin+"\n\x01"), key...))
	case *ecdsa.PublicKey:
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			return 0, false
		}
		id = sum(der)
	default:
		return 0, false
	}
	return binary.BigEndian.Uint32(id), true
}

func leafHash(data []byte) []byte { return sum(append([]byte{0}, data...)) }

func nodeHash(left, right []byte) []byte {
	return sum(append(append([]byte{1}, left...), right...))
}

// rootOf is the hash of a tree of a size with a leaf at an index, and beside it the hashes of a
// proof (RFC 9162, 2.1.3.2).
func rootOf(index, size int64, leaf []byte, hashes [][]byte) ([]byte, error) {
	if index < 0 || index >= size || len(hashes) > maxProofHashes {
		return nil, errors.New("the proof is of no entry of the log")
	}
	at, last, out := index, size-1, leaf
	for _, h := range hashes {
		if last == 0 || len(h) != sha256.Size {
			return nil, errors.New("the proof is too long")
		}
		if at&1 == 1 || at == last {
			out = nodeHash(h, out)
			for at&1 == 0 && at != 0 {
				at, last = at>>1, last>>1
			}
		} else {
			out = nodeHash(out, h)
		}
		at, last = at>>1, last>>1
	}
	if last != 0 {
		return nil, errors.New("the proof is too short")
	}
	return out, nil
}

// An entryOfNote is what a log of the second kind has: of a signature hashedrekord, which names the
// hash of what is signed, or of an envelope dsse, which names the hash of its payload.
type entryOfNote struct {
	Version string `json:"apiVersion"`
	Kind    string `json:"kind"`
	Spec    struct {
		Record *struct {
			Data      hashOfNote      `json:"data"`
			Signature signatureOfNote `json:"signature"`
		} `json:"hashedRekordV002"`
		Envelope *struct {
			PayloadHash hashOfNote        `json:"payloadHash"`
			Signatures  []signatureOfNote `json:"signatures"`
		} `json:"dsseV002"`
	} `json:"spec"`
}

type signatureOfNote struct {
	Content  []byte `json:"content"`
	Verifier struct {
		PublicKey   *rawCertificate `json:"publicKey"`
		Certificate *rawCertificate `json:"x509Certificate"`
	} `json:"verifier"`
}

type hashOfNote struct {
	Algorithm string `json:"algorithm"`
	Digest    []byte `json:"digest"`
}

func (h hashOfNote) of(data []byte) bool {
	hash, ok := map[string]crypto.Hash{"SHA2_256": crypto.SHA256, "SHA2_384": crypto.SHA384, "SHA2_512": crypto.SHA512}[h.Algorithm]
	if !ok {
		return false
	}
	own := hash.New()
	own.Write(data)
	return bytes.Equal(own.Sum(nil), h.Digest)
}

// names is nil if the entry names what is signed, the signature and who signed.
func (e includedEntry) names(kind entryKind, data, logged, signature []byte, key crypto.PublicKey, certificate string) error {
	var entry entryOfNote
	if err := json.Unmarshal(e.body, &entry); err != nil {
		return fmt.Errorf("its log entry is no JSON: %w", err)
	}
	content, signatures := false, []signatureOfNote(nil)
	switch {
	case entry.Version != "0.0.2" || kind != entryOfBundle:
		return fmt.Errorf("its log entry is of the kind %q, %s", entry.Kind, entry.Version)
	case entry.Kind == "hashedrekord" && entry.Spec.Record != nil:
		content, signatures = entry.Spec.Record.Data.of(data), []signatureOfNote{entry.Spec.Record.Signature}
	case entry.Kind == "dsse" && entry.Spec.Envelope != nil:
		content, signatures = entry.Spec.Envelope.PayloadHash.of(logged), entry.Spec.Envelope.Signatures
	default:
		return fmt.Errorf("its log entry is of the kind %q", entry.Kind)
	}
	if !content {
		return errors.New("its log entry is of another payload")
	}
	err := errors.New("its log entry is of another signature")
	for _, s := range signatures {
		if !bytes.Equal(s.Content, signature) {
			continue
		}
		if s.by(key, certificate) {
			return nil
		}
		err = errors.New("its log entry is of another key")
	}
	return err
}

// by tells whether the entry names a key, or the certificate that has it.
func (s signatureOfNote) by(key crypto.PublicKey, certificate string) bool {
	if certificate != "" {
		own, err := readCertificates(certificate)
		return err == nil && s.Verifier.Certificate != nil && bytes.Equal(s.Verifier.Certificate.Raw, own[0].Raw)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	return err == nil && s.Verifier.PublicKey != nil && bytes.Equal(s.Verifier.PublicKey.Raw, der)
}
