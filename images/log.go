package images

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// A bundle is the promise of a transparency log that it has an entry, beside a signature.
type bundle struct {
	Promise []byte `json:"SignedEntryTimestamp"`
	Payload struct {
		Body  string `json:"body"`
		Time  int64  `json:"integratedTime"`
		Index int64  `json:"logIndex"`
		Log   string `json:"logID"`
	} `json:"Payload"`
}

// A logKey is that of a log, for its time.
type logKey struct {
	period
	key crypto.PublicKey
	id  string
	// origin is the name that it signs checkpoints by; empty where that is not known.
	origin string
}

func readLogKey(text string) (*logKey, error) {
	key, counts, err := readTimedKey(text)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, err
	}
	return &logKey{period: counts, key: key, id: hex.EncodeToString(sum(der))}, nil
}

// errNoProof is the error of a signature without a promise of a log. None is asked for over
// the network.
var errNoProof = errors.New("there is no transparency log proof in the signature, and no log is asked for one; sign with the log, or set rekor.ignoreTlog: true")

// knownBy is when one of the logs took in one of some entries, each in a text of its own.
func knownBy(logs []*logKey, texts []string, kind entryKind, logged, signature []byte, key crypto.PublicKey, certificate string) (at time.Time, err error) {
	err = errNoProof
	for _, text := range texts {
		if at, err = entryIn(logs, text, kind, logged, signature, key, certificate); err == nil {
			return at, nil
		}
	}
	return time.Time{}, err
}

func entryIn(logs []*logKey, text string, kind entryKind, logged, signature []byte, key crypto.PublicKey, certificate string) (time.Time, error) {
	if text == "" {
		return time.Time{}, errNoProof
	}
	var b bundle
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		return time.Time{}, fmt.Errorf("its log proof is no JSON: %w", err)
	}
	for _, l := range logs {
		if l.id == b.Payload.Log {
			return l.knows(b, kind, logged, signature, key, certificate)
		}
	}
	return time.Time{}, errors.New("its log proof is of another log")
}

// knows is when a log took in an entry: one of this signature, of what it signs, by this key.
func (l *logKey) knows(b bundle, kind entryKind, logged, signature []byte, key crypto.PublicKey, certificate string) (time.Time, error) {
	// The log signed the entry in canonical JSON.
	promised, err := json.Marshal(struct {
		Body  string `json:"body"`
		Time  int64  `json:"integratedTime"`
		Log   string `json:"logID"`
		Index int64  `json:"logIndex"`
	}{b.Payload.Body, b.Payload.Time, b.Payload.Log, b.Payload.Index})
	if err != nil {
		return time.Time{}, err
	}
	if !l.signs(promised, b.Promise) {
		return time.Time{}, errors.New("its log proof is not signed by the log")
	}
	made := time.Unix(b.Payload.Time, 0)
	if !l.has(made) {
		return time.Time{}, fmt.Errorf("its log is not trusted at %s", made.UTC().Format(time.RFC3339))
	}
	body, err := base64.StdEncoding.DecodeString(b.Payload.Body)
	if err != nil {
		return time.Time{}, fmt.Errorf("its log entry is no base64: %w", err)
	}
	var e logEntry
	if err := json.Unmarshal(body, &e); err != nil {
		return time.Time{}, fmt.Errorf("its log entry is no JSON: %w", err)
	}
	if err := e.of(kind, logged, signature, key, certificate); err != nil {
		return time.Time{}, err
	}
	return made, nil
}

// An entryKind is what a log has entries of.
type entryKind int

const (
	entryOfSignature entryKind = iota
	entryOfEnvelope
	entryOfBundle // of the envelope in a bundle, of which the log names the payload
)

// A logEntry is what a log has: of a signature hashedrekord, of an envelope intoto or dsse.
type logEntry struct {
	Kind string `json:"kind"`
	Spec struct {
		// of hashedrekord
		Data struct {
			Hash hashed `json:"hash"`
		} `json:"data"`
		Signature struct {
			Content   []byte `json:"content"`
			PublicKey struct {
				Content []byte `json:"content"`
			} `json:"publicKey"`
		} `json:"signature"`
		// of intoto, whose later form has the signatures in it
		Content struct {
			Hash        hashed `json:"hash"`
			PayloadHash hashed `json:"payloadHash"`
			Envelope    struct {
				Signatures []struct {
					PublicKey []byte `json:"publicKey"`
					Signature []byte `json:"sig"` // in base64
				} `json:"signatures"`
			} `json:"envelope"`
		} `json:"content"`
		PublicKey []byte `json:"publicKey"`
		// of dsse
		EnvelopeHash hashed `json:"envelopeHash"`
		PayloadHash  hashed `json:"payloadHash"`
		Signatures   []struct {
			Signature string `json:"signature"`
			Verifier  []byte `json:"verifier"`
		} `json:"signatures"`
	} `json:"spec"`
}

type hashed struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"value"`
}

func (h hashed) of(data []byte) bool {
	return h.Algorithm == "sha256" && h.Value == hex.EncodeToString(sum(data))
}

// of is nil if the entry names what is signed, the signature and who signed.
func (e logEntry) of(kind entryKind, logged, signature []byte, key crypto.PublicKey, certificate string) error {
	switch {
	case kind == entryOfSignature && e.Kind == "hashedrekord":
		return e.names(e.Spec.Data.Hash.of(logged), bytes.Equal(e.Spec.Signature.Content, signature), e.Spec.Signature.PublicKey.Content, key, certificate)
	case kind == entryOfEnvelope && e.Kind == "intoto" && len(e.Spec.Content.Envelope.Signatures) > 0:
		for _, s := range e.Spec.Content.Envelope.Signatures {
			if string(s.Signature) == base64.StdEncoding.EncodeToString(signature) {
				return e.names(e.Spec.Content.PayloadHash.of(payloadIn(logged)), true, s.PublicKey, key, certificate)
			}
		}
		return errors.New("its log entry is of another signature")
	case kind == entryOfEnvelope && e.Kind == "intoto":
		// Of the envelope as a whole: its hash covers the signature.
		return e.names(e.Spec.Content.Hash.of(logged), true, e.Spec.PublicKey, key, certificate)
	case kind == entryOfBundle && e.Kind == "intoto":
		for _, s := range e.Spec.Content.Envelope.Signatures {
			if string(s.Signature) == base64.StdEncoding.EncodeToString(signature) {
				return e.names(e.Spec.Content.PayloadHash.of(logged), true, s.PublicKey, key, certificate)
			}
		}
		return errors.New("its log entry is of another signature")
	case kind == entryOfBundle && e.Kind == "dsse":
		for _, s := range e.Spec.Signatures {
			if s.Signature == base64.StdEncoding.EncodeToString(signature) {
				return e.names(e.Spec.PayloadHash.of(logged), true, s.Verifier, key, certificate)
			}
		}
		return errors.New("its log entry is of another signature")
	case kind == entryOfEnvelope && e.Kind == "dsse":
		for _, s := range e.Spec.Signatures {
			if s.Signature == base64.StdEncoding.EncodeToString(signature) {
				return e.names(e.Spec.EnvelopeHash.of(logged), true, s.Verifier, key, certificate)
			}
		}
		return errors.New("its log entry is of another signature")
	}
	return fmt.Errorf("its log entry is of the kind %q", e.Kind)
}

// payloadIn is what an envelope has in it.
func payloadIn(data []byte) []byte {
	var e envelope
	if json.Unmarshal(data, &e) != nil {
		return nil
	}
	content, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return nil
	}
	return content
}

// names is nil if all that an entry names is what was found.
func (e logEntry) names(content, signature bool, who []byte, key crypto.PublicKey, certificate string) error {
	switch {
	case !content:
		return errors.New("its log entry is of another payload")
	case !signature:
		return errors.New("its log entry is of another signature")
	case !isOf(who, key, certificate):
		return errors.New("its log entry is of another key")
	}
	return nil
}

// isOf tells of the PEM of a key, or of the certificate that has it.
func isOf(who []byte, key crypto.PublicKey, certificate string) bool {
	b, _ := pem.Decode(who)
	if b == nil {
		return false
	}
	if certificate != "" {
		own, _ := pem.Decode([]byte(certificate))
		return own != nil && b.Type == "CERTIFICATE" && bytes.Equal(b.Bytes, own.Bytes)
	}
	found := b.Bytes
	if b.Type == "CERTIFICATE" {
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return false
		}
		found = c.RawSubjectPublicKeyInfo
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	return err == nil && bytes.Equal(found, der)
}
