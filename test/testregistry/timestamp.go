package testregistry

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"maps"
	"math/big"
	"testing"
	"time"
)

// StampKey is the annotation of a layer with a timestamp.
const StampKey = "dev.sigstore.cosign/rfc3161timestamp"

// NewStamper is a timestamp authority below another authority. Its certificate began a year ago and
// has such a life. It is not as it must be where uses are given.
func NewStamper(t testing.TB, by *Authority, life time.Duration, uses ...x509.ExtKeyUsage) *Authority {
	t.Helper()
	out := &Authority{Signer: NewSigner(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "stamps"},
		NotBefore: time.Now().Add(-365 * 24 * time.Hour), NotAfter: time.Now().Add(life), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: uses,
	}
	if uses == nil { // encoding/asn1 of id-kp-timeStamping; it must be critical
		template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: []byte{0x30, 0x0a, 0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08}}}
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

// NewRoot is an authority for any use, with a certificate that began ten years ago.
func NewRoot(t testing.TB) *Authority {
	t.Helper()
	out := &Authority{Signer: NewSigner(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: fmt.Sprint("root ", time.Now().UnixNano())},
		NotBefore: time.Now().AddDate(-10, 0, 0), NotAfter: time.Now().AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, out.key.Public(), out.key)
	if err != nil {
		t.Fatal(err)
	}
	if out.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return out
}

type algorithm struct{ Algorithm asn1.ObjectIdentifier }

type attribute struct {
	Type   asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

// Stamp is the answer of a timestamp authority (RFC 3161) that it saw a message then: a CMS
// SignedData, with the authority's certificate in it if it is to be.
func (a *Authority) Stamp(message []byte, then time.Time, withCertificate bool) []byte {
	a.t.Helper()
	h := sha256.Sum256(message)
	return a.stamp(asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}, h[:], nil, then, withCertificate)
}

func (a *Authority) stamp(hashedBy asn1.ObjectIdentifier, message []byte, nonce *big.Int, then time.Time, withCertificate bool) []byte {
	a.t.Helper()
	oid := func(last ...int) asn1.ObjectIdentifier {
		return append(asn1.ObjectIdentifier{1, 2, 840, 113549, 1}, last...)
	}
	sha := algorithm{asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}}
	der := func(value any, params ...string) []byte {
		out, err := asn1.MarshalWithParams(value, append(params, "")[0])
		if err != nil {
			a.t.Fatal(err)
		}
		return out
	}
	raw := func(value any, params ...string) asn1.RawValue {
		return asn1.RawValue{FullBytes: der(value, params...)}
	}
	type imprint struct {
		Algorithm algorithm
		Hash      []byte
	}
	hash := func(data []byte) []byte { h := sha256.Sum256(data); return h[:] }
	tokenType := oid(9, 16, 1, 4)
	info := der(struct {
		Version int
		Policy  asn1.ObjectIdentifier
		Imprint imprint
		Serial  *big.Int
		Time    time.Time `asn1:"generalized"`
		Nonce   *big.Int  `asn1:"optional"`
	}{1, asn1.ObjectIdentifier{1, 2, 3}, imprint{algorithm{hashedBy}, message}, big.NewInt(then.UnixNano()), then.UTC().Truncate(time.Second), nonce})
	type certificateID struct{ Hash []byte }
	attributes := []attribute{
		{oid(9, 3), []asn1.RawValue{raw(tokenType)}},
		{oid(9, 4), []asn1.RawValue{raw(hash(info))}},
		{oid(9, 16, 2, 47), []asn1.RawValue{raw(struct{ Certificates []certificateID }{[]certificateID{{hash(a.certificate.Raw)}}})}},
	}
	signature, err := a.key.Sign(rand.Reader, hash(der(attributes, "set")), crypto.SHA256)
	if err != nil {
		a.t.Fatal(err)
	}
	type issuerAndSerial struct {
		Issuer asn1.RawValue
		Serial *big.Int
	}
	type signerInfo struct {
		Version    int
		ID         issuerAndSerial
		Digest     algorithm
		Attributes []attribute `asn1:"set,tag:0"`
		Algorithm  algorithm
		Signature  []byte
	}
	type content struct {
		Type    asn1.ObjectIdentifier
		Content []byte `asn1:"explicit,tag:0"`
	}
	type signedData struct {
		Version      int
		Digests      []algorithm `asn1:"set"`
		Content      content
		Certificates asn1.RawValue `asn1:"optional"`
		Signers      []signerInfo  `asn1:"set"`
	}
	data := signedData{
		Version: 3, Digests: []algorithm{sha}, Content: content{tokenType, info},
		Signers: []signerInfo{{1, issuerAndSerial{asn1.RawValue{FullBytes: a.certificate.RawIssuer}, a.certificate.SerialNumber}, sha, attributes, algorithm{asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 3, 2}}, signature}},
	}
	if withCertificate {
		data.Certificates = asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: 0, IsCompound: true, Bytes: a.certificate.Raw}
	}
	return der(struct {
		Status struct{ Status int }
		Token  struct {
			Type asn1.ObjectIdentifier
			Data signedData `asn1:"explicit,tag:0"`
		}
	}{Token: struct {
		Type asn1.ObjectIdentifier
		Data signedData `asn1:"explicit,tag:0"`
	}{oid(7, 2), data}})
}

// Stamped is a layer with a timestamp of a message.
func Stamped(l Layer, answer []byte) Layer {
	annotations := maps.Clone(l.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[StampKey] = fmt.Sprintf(`{"SignedRFC3161Timestamp":%q}`, base64.StdEncoding.EncodeToString(answer))
	return Layer{l.Data, annotations}
}

// SignatureOf are the bytes of the signature that a layer is.
func SignatureOf(l Layer) []byte {
	out, _ := base64.StdEncoding.DecodeString(l.Annotations[SignatureKey])
	return out
}
