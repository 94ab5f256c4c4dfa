package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// The keys of a record. The last two are those of a Secret for TLS.
const (
	keyBundle  = "ca.crt"
	keyNext    = "next-ca.crt"
	keyNextKey = "next-ca.key"
	keyCA      = "signing-ca.crt"
	keyCAKey   = "ca.key"
	keyServing = "tls.crt"
	keyPrivate = "tls.key"
)

// backdate is for clocks that are behind.
const backdate = 10 * time.Minute

// A pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (p *pair) endsWithin(d time.Duration, now time.Time) bool {
	return p == nil || now.Add(d).After(p.cert.NotAfter)
}

// A record is what replicas share.
type record struct {
	signer  *pair // signs
	next    *pair // in the bundle, and signs when it has been there for long enough
	serving *pair
	old     []*x509.Certificate // signed something that is still valid
	replace bool                // another authority is wanted at once; it is not stored
}

// bundle are the authorities that API servers should trust.
func (r *record) bundle() []byte {
	list := slices.Clone(r.old)
	for _, p := range []*pair{r.signer, r.next} {
		if p != nil {
			list = append(list, p.cert)
		}
	}
	text, _ := certutil.EncodeCertificates(list...) // into memory
	return text
}

// keep takes over what a replica has had before, and tells whether it did. Where nothing is
// stored any more, the authority goes on until API servers know another one, which comes at
// once: whoever deletes what is stored wants another. Where somebody has stored another
// authority, API servers trust the one before for as long as something that it has signed is
// shown.
func (r *record) keep(before *record, now time.Time) bool {
	switch {
	case before == nil:
		return false
	case r.signer == nil:
		*r = record{signer: before.signer, next: before.next, serving: before.serving, old: slices.Clone(before.old), replace: true}
		return true
	}
	c := before.signer.cert
	if r.signer.is(c) || r.next.is(c) || slices.ContainsFunc(r.old, c.Equal) || before.signer.endsWithin(0, now) {
		return false
	}
	r.old = append(r.old, c)
	return true
}

// A renewal is what a record is brought up to date with.
type renewal struct {
	names Names
	terms terms
	now   time.Time
	known bool // API servers know the next authority
}

// renew brings the record up to date, and tells whether something changed.
func (r *record) renew(by renewal) (changed bool, err error) {
	n := len(r.old)
	r.old = slices.DeleteFunc(r.old, func(c *x509.Certificate) bool { return by.now.After(c.NotAfter) })
	changed = len(r.old) != n
	for _, step := range []func(renewal) (bool, error){r.announce, r.promote, r.found, r.sign} {
		did, err := step(by)
		if err != nil {
			return changed, err
		}
		changed = changed || did
	}
	return changed, nil
}

// announce puts the next authority into the bundle, in time.
func (r *record) announce(by renewal) (bool, error) {
	if r.next != nil || r.signer == nil || !r.replace && !r.signer.endsWithin(by.terms.authorityRenew, by.now) || r.signer.endsWithin(0, by.now) {
		return false, nil
	}
	var err error
	r.next, err = newAuthority(by)
	return true, err
}

// due tells that the next authority has been in the bundle for long enough to sign.
func (r *record) due(by renewal) bool {
	return r.next != nil && !by.now.Before(r.next.cert.NotBefore.Add(backdate+by.terms.overlap))
}

// promote lets the next authority sign, once it is known, or where there is no other
// that can.
func (r *record) promote(by renewal) (bool, error) {
	if r.next.endsWithin(0, by.now) || !(r.due(by) && by.known) && !r.signer.endsWithin(0, by.now) {
		return false, nil
	}
	if r.signer != nil {
		r.old = append(r.old, r.signer.cert)
	}
	r.signer, r.next, r.serving = r.next, nil, nil
	return true, nil
}

// found makes the first authority. There is nobody yet who would not know it.
func (r *record) found(by renewal) (bool, error) {
	if !r.signer.endsWithin(0, by.now) {
		return false, nil
	}
	var err error
	r.signer, err = newAuthority(by)
	r.next = nil
	return true, err
}

// sign makes the certificate that is shown. One that ends with its authority cannot be
// made to last longer.
func (r *record) sign(by renewal) (bool, error) {
	if r.serving != nil && by.names.covered(r.serving.cert) && r.serving.cert.CheckSignatureFrom(r.signer.cert) == nil &&
		(!r.serving.endsWithin(by.terms.servingRenew, by.now) || r.serving.cert.NotAfter.Equal(r.signer.cert.NotAfter)) {
		return false, nil
	}
	var err error
	r.serving, err = newServing(r.signer, by)
	return true, err
}

// Names are what the API server calls the webhook by.
type Names struct {
	DNS []string
	IPs []net.IP
}

func (n Names) covered(c *x509.Certificate) bool {
	for _, name := range n.DNS {
		if c.VerifyHostname(name) != nil {
			return false
		}
	}
	return !slices.ContainsFunc(n.IPs, func(ip net.IP) bool { return c.VerifyHostname(ip.String()) != nil })
}

func newAuthority(by renewal) (*pair, error) {
	return issue(nil, &x509.Certificate{
		Subject:   pkix.Name{CommonName: "kvap webhook authority"},
		NotBefore: by.now.Add(-backdate), NotAfter: by.now.Add(by.terms.authority),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

func newServing(signer *pair, by renewal) (*pair, error) {
	end := by.now.Add(by.terms.serving)
	if signer.cert.NotAfter.Before(end) {
		end = signer.cert.NotAfter
	}
	return issue(signer, &x509.Certificate{
		Subject:   pkix.Name{CommonName: "kvap webhook"},
		NotBefore: by.now.Add(-backdate), NotAfter: end, DNSNames: by.names.DNS, IPAddresses: by.names.IPs,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// issue makes a certificate and its key; without a signer it signs itself.
func issue(signer *pair, template *x509.Certificate) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	parent, by := template, key
	if signer != nil {
		parent, by = signer.cert, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &pair{cert, key}, err
}

// encode is the record as the data of a Secret.
func (r *record) encode() (map[string][]byte, error) {
	out := map[string][]byte{keyBundle: r.bundle()}
	for _, one := range []struct {
		p         *pair
		cert, key string
	}{{r.signer, keyCA, keyCAKey}, {r.next, keyNext, keyNextKey}, {r.serving, keyServing, keyPrivate}} {
		if one.p == nil {
			continue
		}
		key, err := x509.MarshalPKCS8PrivateKey(one.p.key)
		if err != nil {
			return nil, err
		}
		out[one.cert] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.p.cert.Raw})
		out[one.key] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	}
	return out, nil
}

// decodeRecord reads what encode wrote. An empty record is one that is yet to be
// made.
func decodeRecord(data map[string][]byte) (*record, error) {
	r := &record{}
	for _, one := range []struct {
		p         **pair
		cert, key string
	}{{&r.signer, keyCA, keyCAKey}, {&r.next, keyNext, keyNextKey}, {&r.serving, keyServing, keyPrivate}} {
		if len(data[one.cert]) == 0 {
			continue
		}
		p, err := decodePair(data[one.cert], data[one.key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.cert, err)
		}
		*one.p = p
	}
	for rest := data[keyBundle]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return r, nil
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keyBundle, err)
		}
		if !r.signer.is(cert) && !r.next.is(cert) {
			r.old = append(r.old, cert)
		}
	}
}

func (p *pair) is(c *x509.Certificate) bool { return p != nil && c != nil && p.cert.Equal(c) }

func decodePair(cert, key []byte) (*pair, error) {
	both, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	private, ok := both.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key is no ECDSA key")
	}
	return &pair{both.Leaf, private}, nil
}
