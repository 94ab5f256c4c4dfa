package images

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
)

// A signed is a signature as sigstore-go looks at one, of a layer or of a bundle.
//
// It is asked in parts, and not for all by its Verifier: which would choose the hash by the key, where
// a policy names it; has no key of a policy, nor a certificate of one, that counts without a log; takes
// now for the clock's time; and has one text for whatever is wrong with a certificate.
type signed struct {
	verify.BaseSignedEntity
	content verify.SignatureContent
	by      holder
	entry   *rekor.TransparencyLogEntry // of the log that is asked about
	whole   []byte                      // the envelope as it was written, of a layer
}

// SignatureContent implements verify.SignedEntity.
func (s signed) SignatureContent() (verify.SignatureContent, error) { return s.content, nil }

// VerificationContent implements verify.SignedEntity.
func (s signed) VerificationContent() (verify.VerificationContent, error) { return s.by, nil }

// TlogEntries implements verify.SignedEntity.
func (s signed) TlogEntries() ([]*tlog.Entry, error) {
	e, err := tlog.ParseTransparencyLogEntry(s.entry)
	return []*tlog.Entry{e}, err
}

// ofMessage is a signature of data; of its hash, for a log.
func ofMessage(hash crypto.Hash, data, signature []byte) verify.SignatureContent {
	h := hash.New()
	h.Write(data)
	// A log has no entries of sha224, which is unknown to sigstore-go.
	name := map[crypto.Hash]string{crypto.SHA256: "sha256", crypto.SHA384: "sha384", crypto.SHA512: "sha512"}[hash]
	return bundle.NewMessageSignature(h.Sum(nil), name, signature)
}

// ofEnvelope is one of the signatures of an envelope.
func ofEnvelope(e dsse.Envelope, one dsse.Signature) verify.SignatureContent {
	e.Signatures = []dsse.Signature{one}
	return &bundle.Envelope{Envelope: &e}
}

// A holder is who signed: by a key, or by that of a certificate.
type holder struct {
	key         crypto.PublicKey
	certificate *x509.Certificate
}

// CompareKey implements verify.VerificationContent: a log has the certificate, where one is beside the
// signature, and the key or any certificate of it, where that is the attestor's.
func (h holder) CompareKey(found any, _ root.TrustedMaterial) bool {
	c, certified := found.(*x509.Certificate)
	switch {
	case h.certificate != nil:
		return certified && c.Equal(h.certificate)
	case certified:
		found = c.PublicKey
	}
	key, ok := found.(interface{ Equal(x crypto.PublicKey) bool })
	return ok && key.Equal(h.key)
}

// ValidAtTime implements verify.VerificationContent. Verifier.valid says whether it is.
func (h holder) ValidAtTime(time.Time, root.TrustedMaterial) bool { return true }

// Certificate implements verify.VerificationContent.
func (h holder) Certificate() *x509.Certificate { return h.certificate }

// Intermediates implements verify.VerificationContent.
func (h holder) Intermediates() []*x509.Certificate { return nil }

// PublicKey implements verify.VerificationContent.
func (h holder) PublicKey() verify.PublicKeyProvider { return h }

// Hint implements verify.PublicKeyProvider.
func (h holder) Hint() string { return "" }

// A material is whom sigstore-go trusts in one question.
type material struct {
	root.BaseTrustedMaterial
	logs, certificates map[string]*root.TransparencyLog
	key                crypto.PublicKey
}

// RekorLogs implements root.TrustedMaterial.
func (m *material) RekorLogs() map[string]*root.TransparencyLog { return m.logs }

// CTLogs implements root.TrustedMaterial.
func (m *material) CTLogs() map[string]*root.TransparencyLog { return m.certificates }

// PublicKeyVerifier implements root.TrustedMaterial.
func (m *material) PublicKeyVerifier(string) (root.TimeConstrainedVerifier, error) {
	by, err := signature.LoadVerifier(m.key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return root.NewExpiringKey(by, time.Time{}, time.Time{}), nil
}

// signs tells whether a signature of data is by the holder of a key.
func signs(key crypto.PublicKey, hash crypto.Hash, data, made []byte) bool {
	by, err := signature.LoadVerifier(key, hash)
	return err == nil && by.VerifySignature(bytes.NewReader(made), bytes.NewReader(data)) == nil
}
