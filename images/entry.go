package images

import (
	"bytes"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// oldKinds are those of entries that logs have of attestations, and that sigstore-go knows no longer, each
// with what is nil if an entry is of a signature.
func oldKinds() map[string]func(s signed, body []byte) error {
	return map[string]func(signed, []byte) error{"intoto 0.0.1": signed.isWhole, "dsse 0.0.2": signed.isPayload}
}

// isWhole is of the entries that cosign made before 2.2: of the hash of the envelope as it was written,
// which has the signature in it.
func (s signed) isWhole(body []byte) error {
	var read struct {
		Spec struct {
			Content struct {
				Hash struct {
					Algorithm string `json:"algorithm"`
					Value     string `json:"value"`
				} `json:"hash"`
			} `json:"content"`
			PublicKey []byte `json:"publicKey"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &read); err != nil {
		return fmt.Errorf("its log entry is no JSON: %w", err)
	}
	hash := read.Spec.Content.Hash
	if s.whole == nil || hash.Algorithm != "sha256" || hash.Value != hex.EncodeToString(sum(s.whole)) {
		return errors.New("its log entry is of another payload")
	}
	if who, _ := pem.Decode(read.Spec.PublicKey); who == nil || !s.isBy(who.Bytes) {
		return errors.New("its log entry is of another key")
	}
	return nil
}

// isPayload is of the entries that logs of the second kind took in at first: of the hash of the payload,
// and of the signatures.
func (s signed) isPayload(body []byte) error {
	type raw struct {
		Bytes []byte `json:"rawBytes"`
	}
	var read struct {
		Spec struct {
			Envelope struct {
				Hash struct {
					Algorithm string `json:"algorithm"`
					Digest    []byte `json:"digest"`
				} `json:"payloadHash"`
				Signatures []struct {
					Content  []byte `json:"content"`
					Verifier struct {
						PublicKey   raw `json:"publicKey"`
						Certificate raw `json:"x509Certificate"`
					} `json:"verifier"`
				} `json:"signatures"`
			} `json:"dsseV002"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &read); err != nil {
		return fmt.Errorf("its log entry is no JSON: %w", err)
	}
	e, of := read.Spec.Envelope, s.content.EnvelopeContent()
	if of == nil {
		return errors.New("its log entry is of an envelope")
	}
	payload, err := of.RawEnvelope().DecodeB64Payload()
	if err != nil || e.Hash.Algorithm != "SHA2_256" || !bytes.Equal(e.Hash.Digest, sum(payload)) {
		return errors.New("its log entry is of another payload")
	}
	err = errors.New("its log entry is of another signature")
	for _, one := range e.Signatures {
		if !bytes.Equal(one.Content, s.content.Signature()) {
			continue
		}
		if s.isBy(one.Verifier.Certificate.Bytes) || s.isBy(one.Verifier.PublicKey.Bytes) {
			return nil
		}
		err = errors.New("its log entry is of another key")
	}
	return err
}

// isBy tells whether who signed has a certificate or a key, in DER.
func (s signed) isBy(der []byte) bool {
	if c, err := x509.ParseCertificate(der); err == nil {
		return s.by.CompareKey(c, nil)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	return err == nil && s.by.CompareKey(key, nil)
}
