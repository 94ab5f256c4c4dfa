package images

import (
	"crypto"
	"crypto/x509"
	_ "embed" // the trusted root of the public Sigstore
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"
)

//go:embed trustedroot.json
var publicRoot []byte

// A Trust is whom signatures without keys are trusted by: authorities that issue certificates,
// logs of signatures, logs of certificates, and authorities that say when, each for its time.
type Trust struct {
	authorities  []authority
	logs         []*logKey
	certificates []*logKey
	stampers     []stamper
	id           string
	unknown      error // why nothing is known of it yet
}

// ID tells it from others: it is the hash of its document.
func (t *Trust) ID() string { return t.id }

// A period has no end where that is zero.
type period struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

func (p period) has(at time.Time) bool {
	return !at.Before(p.Start) && (p.End.IsZero() || !at.After(p.End))
}

// An authority issues certificates.
type authority struct {
	period
	roots, between *x509.CertPool
	lists          []*x509.RevocationList
	now            func() time.Time // for the lists
}

// A trustedRoot is a document application/vnd.dev.sigstore.trustedroot+json.
type trustedRoot struct {
	Logs         []trustedLog       `json:"tlogs"`
	Certificates []trustedLog       `json:"ctlogs"`
	Authorities  []trustedAuthority `json:"certificateAuthorities"`
	Stampers     []trustedAuthority `json:"timestampAuthorities"`
}

type trustedAuthority struct {
	ValidFor period `json:"validFor"`
	Chain    struct {
		Certificates []rawCertificate `json:"certificates"`
	} `json:"certChain"`
}

func (a trustedAuthority) certificates() ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for _, c := range a.Chain.Certificates {
		certificate, err := x509.ParseCertificate(c.Raw)
		if err != nil {
			return nil, fmt.Errorf("a certificate of the trusted root: %w", err)
		}
		out = append(out, certificate)
	}
	return out, nil
}

type trustedLog struct {
	URL       string `json:"baseUrl"`
	PublicKey struct {
		Raw      []byte `json:"rawBytes"`
		ValidFor period `json:"validFor"`
	} `json:"publicKey"`
}

// PublicTrust is that of the public Sigstore, as it was when this was built: trustedroot.json is
// the trusted_root.json that sigstore/root-signing signs (Apache License 2.0).
func PublicTrust() (*Trust, error) { return ReadTrust(publicRoot) }

// ReadTrust reads a trusted root of Sigstore. A log whose key is of a type that is not
// supported here proves nothing, and is left out.
func ReadTrust(data []byte) (*Trust, error) {
	var doc trustedRoot
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("the trusted root is no JSON: %w", err)
	}
	out := &Trust{id: hex.EncodeToString(sum(data)), logs: logKeys(doc.Logs), certificates: logKeys(doc.Certificates)}
	for _, a := range doc.Authorities {
		one := authority{period: a.ValidFor, roots: x509.NewCertPool(), between: x509.NewCertPool()}
		certificates, err := a.certificates()
		if err != nil {
			return nil, err
		}
		for _, c := range certificates {
			one.add(c)
		}
		out.authorities = append(out.authorities, one)
	}
	for _, a := range doc.Stampers {
		certificates, err := a.certificates()
		if err != nil {
			return nil, err
		}
		one, err := newStamper(certificates)
		if err != nil {
			return nil, fmt.Errorf("the trusted root: %w", err)
		}
		one.period = a.ValidFor
		out.stampers = append(out.stampers, one)
	}
	if len(out.authorities)+len(out.logs)+len(out.stampers) == 0 {
		return nil, errors.New("the trusted root has no authority, and no log")
	}
	return out, nil
}

// readAuthority reads certificates, of which one at least signed itself, and lists of those that
// are revoked.
func readAuthority(text string, now func() time.Time) (authority, error) {
	out := authority{roots: x509.NewCertPool(), between: x509.NewCertPool(), now: now}
	certificates, err := readCertificates(text)
	if err != nil {
		return out, err
	}
	if out.lists, err = readRevoked(text); err != nil {
		return out, err
	}
	found := false
	for _, c := range certificates {
		found = out.add(c) || found
	}
	if !found {
		return out, errors.New("there is no root among the certificates: none of them signed itself")
	}
	return out, nil
}

// issued are the ways from a certificate to a root, all of which was valid at a time, and is not
// revoked.
func (a authority) issued(c *x509.Certificate, at time.Time) ([][]*x509.Certificate, error) {
	chains, err := c.Verify(x509.VerifyOptions{Roots: a.roots, Intermediates: a.between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}})
	if err != nil || len(a.lists) == 0 {
		return chains, err
	}
	return unrevoked(a.lists, chains, a.now())
}

// add adds a certificate that signed itself to the roots, and another to those between.
func (a *authority) add(c *x509.Certificate) (root bool) {
	if c.CheckSignatureFrom(c) == nil {
		a.roots.AddCert(c)
		return true
	}
	a.between.AddCert(c)
	return false
}

func logKeys(logs []trustedLog) []*logKey {
	var out []*logKey
	for _, l := range logs {
		key, err := x509.ParsePKIXPublicKey(l.PublicKey.Raw)
		if err != nil || supported(key) != nil {
			continue
		}
		one := &logKey{key: key, id: hex.EncodeToString(sum(l.PublicKey.Raw)), period: l.PublicKey.ValidFor}
		if at, err := url.Parse(l.URL); err == nil {
			one.origin = at.Hostname()
		}
		out = append(out, one)
	}
	return out
}

// signs tells whether the log signed data.
func (l *logKey) signs(data, signature []byte) bool {
	return signs(l.key, crypto.SHA256, data, signature)
}
