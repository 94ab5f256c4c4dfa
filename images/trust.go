package images

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	_ "embed" // the trusted root of the public Sigstore
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	trustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"
)

//go:embed trustedroot.json
var publicRoot []byte

// A Trust is whom signatures without keys are trusted by: authorities that issue certificates,
// logs of signatures, logs of certificates, and authorities that say when, each for its time.
type Trust struct {
	authorities  []authority
	logs         map[string]*root.TransparencyLog
	certificates map[string]*root.TransparencyLog
	stampers     []stamper
	id           string
	unknown      error // why nothing is known of it yet
}

// ID tells it from others: it is the hash of its document.
func (t *Trust) ID() string { return t.id }

// A period has no end where that is zero.
type period struct{ Start, End time.Time }

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

// PublicTrust is that of the public Sigstore, as it was when this was built: trustedroot.json is
// the trusted_root.json that sigstore/root-signing signs (Apache License 2.0).
func PublicTrust() (*Trust, error) { return ReadTrust(publicRoot) }

// ReadTrust reads a trusted root of Sigstore, a document
// application/vnd.dev.sigstore.trustedroot+json.
func ReadTrust(data []byte) (*Trust, error) {
	var doc trustroot.TrustedRoot
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("the trusted root is no JSON: %w", err)
	}
	out := &Trust{id: hex.EncodeToString(sum(data)), logs: logsIn(doc.GetTlogs()), certificates: logsIn(doc.GetCtlogs())}
	for _, a := range doc.GetCertificateAuthorities() {
		read, err := root.ParseCertificateAuthority(a)
		if err != nil {
			return nil, fmt.Errorf("a certificate of the trusted root: %w", err)
		}
		one := authority{period: period{read.ValidityPeriodStart, read.ValidityPeriodEnd}, roots: x509.NewCertPool(), between: x509.NewCertPool()}
		for _, c := range append(read.Intermediates, read.Root) {
			one.add(c)
		}
		out.authorities = append(out.authorities, one)
	}
	stampers, err := root.ParseTimestampingAuthorities(doc.GetTimestampAuthorities())
	if err != nil {
		return nil, fmt.Errorf("a certificate of the trusted root: %w", err)
	}
	for _, a := range stampers {
		read, ok := a.(*root.SigstoreTimestampingAuthority)
		if !ok {
			continue
		}
		chain := slices.DeleteFunc(append([]*x509.Certificate{read.Leaf, read.Root}, read.Intermediates...), func(c *x509.Certificate) bool { return c == nil })
		one, err := newStamper(chain)
		if err != nil {
			return nil, fmt.Errorf("the trusted root: %w", err)
		}
		one.period = period{read.ValidityPeriodStart, read.ValidityPeriodEnd}
		out.stampers = append(out.stampers, one)
	}
	if len(out.authorities)+len(out.logs)+len(out.stampers) == 0 {
		return nil, errors.New("the trusted root has no authority, and no log")
	}
	return out, nil
}

// completed is a log as sigstore-go reads one, with what a root may leave out since it follows from the key.
func completed(l *trustroot.TransparencyLogInstance) *trustroot.TransparencyLogInstance {
	key, err := x509.ParsePKIXPublicKey(l.GetPublicKey().GetRawBytes())
	if err != nil {
		return l // of another form, which sigstore-go may know
	}
	out := &trustroot.TransparencyLogInstance{BaseUrl: l.GetBaseUrl(), HashAlgorithm: l.GetHashAlgorithm(), LogId: l.GetLogId()}
	out.PublicKey = &common.PublicKey{RawBytes: l.GetPublicKey().GetRawBytes(), KeyDetails: l.GetPublicKey().GetKeyDetails()}
	if out.HashAlgorithm == common.HashAlgorithm_HASH_ALGORITHM_UNSPECIFIED {
		out.HashAlgorithm = common.HashAlgorithm_SHA2_256
	}
	if len(out.GetLogId().GetKeyId()) == 0 {
		out.LogId = &common.LogId{KeyId: sum(l.GetPublicKey().GetRawBytes())}
	}
	if out.PublicKey.KeyDetails == common.PublicKeyDetails_PUBLIC_KEY_DETAILS_UNSPECIFIED {
		switch key.(type) { // sigstore-go takes the hash of the key itself
		case *ecdsa.PublicKey:
			out.PublicKey.KeyDetails = common.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256
		case *rsa.PublicKey:
			out.PublicKey.KeyDetails = common.PublicKeyDetails_PKIX_RSA_PKCS1V15_4096_SHA256
		case ed25519.PublicKey:
			out.PublicKey.KeyDetails = common.PublicKeyDetails_PKIX_ED25519
		}
	}
	first := timestamppb.New(time.Unix(0, 0)) // none at all would be no time to sigstore-go
	out.PublicKey.ValidFor = &common.TimeRange{Start: l.GetPublicKey().GetValidFor().GetStart(), End: l.GetPublicKey().GetValidFor().GetEnd()}
	if start := out.PublicKey.ValidFor.Start; start == nil || start.AsTime().Before(first.AsTime()) {
		out.PublicKey.ValidFor.Start = first
	}
	return out
}

// logsIn are logs by their names. One whose key sigstore-go does not know how to use proves nothing, and is
// left out.
func logsIn(all []*trustroot.TransparencyLogInstance) map[string]*root.TransparencyLog {
	out := map[string]*root.TransparencyLog{}
	for _, l := range all {
		if read, err := root.ParseTransparencyLogs([]*trustroot.TransparencyLogInstance{completed(l)}); err == nil {
			maps.Copy(out, read)
		}
	}
	return out
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
