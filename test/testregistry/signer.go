package testregistry

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// The annotations of signatures.
const (
	SignatureKey   = "dev.cosignproject.cosign/signature"
	CertificateKey = "dev.sigstore.cosign/certificate"
	ChainKey       = "dev.sigstore.cosign/chain"
	BundleKey      = "dev.sigstore.cosign/bundle"
)

// Statement is the type of payloads that attest.
const Statement = "application/vnd.in-toto+json"

// A Signer has a private key.
type Signer struct {
	t    testing.TB
	key  crypto.Signer
	hash crypto.Hash
}

// NewSigner has a key of the curve P-256.
func NewSigner(t testing.TB) *Signer { return OnCurve(t, elliptic.P256(), crypto.SHA256) }

// OnCurve is a signer with a key of a curve.
func OnCurve(t testing.TB, curve elliptic.Curve, hash crypto.Hash) *Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{t, key, hash}
}

// ByRSA is a signer with a key of RSA.
func ByRSA(t testing.TB, hash crypto.Hash) *Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{t, key, hash}
}

// ByEd25519 is a signer with a key of Ed25519.
func ByEd25519(t testing.TB) *Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Signer{t, key, crypto.SHA256}
}

// PEM is the public key.
func (s *Signer) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: s.der()}))
}

func (s *Signer) der() []byte {
	s.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		s.t.Fatal(err)
	}
	return der
}

// Sign is the signature of data.
func (s *Signer) Sign(data []byte) []byte {
	s.t.Helper()
	digest, options := data, crypto.SignerOpts(crypto.Hash(0))
	if _, ok := s.key.(ed25519.PrivateKey); !ok {
		h := s.hash.New()
		h.Write(data)
		digest, options = h.Sum(nil), s.hash
	}
	out, err := s.key.Sign(rand.Reader, digest, options)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// Payload is what a signature of an image is of.
func Payload(digest string, optional map[string]string) []byte {
	more, _ := json.Marshal(optional)
	return fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":%s}`, digest, more)
}

// Signature is a layer that signs an image that is pinned, with annotations.
func (s *Signer) Signature(pinned string, optional map[string]string) Layer {
	data := Payload(Digest(pinned), optional)
	return Layer{data, map[string]string{SignatureKey: base64.StdEncoding.EncodeToString(s.Sign(data))}}
}

// Attestation is a layer that attests something of an image that is pinned.
func (s *Signer) Attestation(pinned, kind, predicate string) Layer {
	return s.Envelope(Statement, fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v0.1","predicateType":%q,"subject":[{"name":"x","digest":{"sha256":%q}}],"predicate":%s}`,
		kind, strings.TrimPrefix(Digest(pinned), "sha256:"), predicate))
}

// Envelope is a layer with a signed payload of a type.
func (s *Signer) Envelope(media string, payload []byte) Layer {
	signature := s.Sign(fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(media), media, len(payload), payload))
	return Layer{Data: fmt.Appendf(nil, `{"payloadType":%q,"payload":%q,"signatures":[{"keyid":"","sig":%q}]}`,
		media, base64.StdEncoding.EncodeToString(payload), base64.StdEncoding.EncodeToString(signature))}
}

// Logged is a layer with the promise of a log that it took in an entry.
func (s *Signer) Logged(l Layer, entry string, at time.Time) Layer {
	id := s.id()
	body := base64.StdEncoding.EncodeToString([]byte(entry))
	promised := fmt.Appendf(nil, `{"body":%q,"integratedTime":%d,"logID":%q,"logIndex":7}`, body, at.Unix(), hex.EncodeToString(id))
	annotations := maps.Clone(l.Annotations)
	annotations[BundleKey] = fmt.Sprintf(`{"SignedEntryTimestamp":%q,"Payload":{"body":%q,"integratedTime":%d,"logIndex":7,"logID":%q}}`,
		base64.StdEncoding.EncodeToString(s.Sign(promised)), body, at.Unix(), hex.EncodeToString(id))
	return Layer{l.Data, annotations}
}

// EntryOf is the entry that a log has of a signature by a key or certificate.
func EntryOf(l Layer, who string) string {
	hash := sha256.Sum256(l.Data)
	return fmt.Sprintf(`{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":{"algorithm":"sha256","value":%q}},"signature":{"content":%q,"publicKey":{"content":%q}}}}`,
		hex.EncodeToString(hash[:]), l.Annotations[SignatureKey], base64.StdEncoding.EncodeToString([]byte(who)))
}

// An Authority signs, and issues certificates.
type Authority struct {
	*Signer
	certificate *x509.Certificate
}

// NewAuthority has a certificate by another authority, or, if that is nil, by itself. It began
// an hour ago.
func NewAuthority(t testing.TB, by *Authority, life time.Duration) *Authority {
	t.Helper()
	return certified(t, by, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: fmt.Sprint(time.Now().UnixNano())},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
}

// certified is a signer with a certificate by an authority, or, if that is nil, by itself.
func certified(t testing.TB, by *Authority, template *x509.Certificate) *Authority {
	t.Helper()
	out := &Authority{Signer: NewSigner(t)}
	parent, key := template, out.key
	if by != nil {
		parent, key = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, out.key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if out.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return out
}

// An Identity is whom an authority issues a certificate for: Fulcio's have an issuer, and one
// name, which may be Other than an address or a URI. It has none of what is empty.
type Identity struct{ Email, URI, Other, Issuer string }

// NewHolder has a certificate for an identity, of ten minutes that began then.
func NewHolder(t testing.TB, by *Authority, of Identity, then time.Time) *Authority {
	t.Helper()
	out := &Authority{Signer: NewSigner(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: then, NotAfter: then.Add(10 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if of.Email != "" {
		template.EmailAddresses = []string{of.Email}
	}
	if of.URI != "" {
		at, err := url.Parse(of.URI)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = []*url.URL{at}
	}
	if of.Issuer != "" {
		text, err := asn1.Marshal(of.Issuer)
		if err != nil {
			t.Fatal(err)
		}
		template.ExtraExtensions = []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}, Value: []byte(of.Issuer)},
			{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}, Value: text},
		}
	}
	if of.Other != "" {
		name, err := cryptoutils.MarshalOtherNameSAN(of.Other, true)
		if err != nil {
			t.Fatal(err)
		}
		template.ExtraExtensions = append(template.ExtraExtensions, *name)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, out.key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	if out.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return out
}

// Raw is its certificate in DER.
func (a *Authority) Raw() []byte { return a.certificate.Raw }

// Certificate is its PEM.
func (a *Authority) Certificate() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// Certified is a signature with the certificate of who signed, and others, beside it.
func (a *Authority) Certified(pinned string, chain ...*Authority) Layer {
	l := a.Signature(pinned, nil)
	l.Annotations[CertificateKey] = a.Certificate()
	for _, c := range chain {
		l.Annotations[ChainKey] += c.Certificate()
	}
	return l
}

// Revokes is the PEM of a list of certificates that the authority revoked, which counts until then.
func (a *Authority) Revokes(until time.Time, who ...*Authority) string {
	a.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: until}
	for _, one := range who {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: one.certificate.SerialNumber, RevocationTime: time.Now().Add(-time.Minute)})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.certificate, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}
