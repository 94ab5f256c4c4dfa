package images

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	_ "crypto/sha256" // the hashes of signatures
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// An Attestor is one who signs: as a policy says it, in texts. It has a Key, a Certificate,
// a Chain, or is Keyless.
type Attestor struct {
	// Key is the PEM of a public key, perhaps with the time that it counts for, as in window.go.
	Key string
	// Certificate is the PEM of one whose key signs. With a Chain it must be issued under it.
	Certificate string
	// Chain is the PEM of a root, and of intermediates in front of it. Without a Certificate
	// it is what the certificate beside a signature must be issued under. Lists of revoked
	// certificates may stand there.
	Chain string
	// Hash is sha224, sha256, sha384 or sha512; sha256 if it is empty.
	Hash string
	// Annotations are those that a signature must have.
	Annotations map[string]string
	// Repository is where signatures are, if not beside the image.
	Repository string
	// TagPrefix is in front of the tags that signatures and attestations have.
	TagPrefix string
	// Format is where signatures and attestations are looked for; Layers if it is empty.
	Format  Format
	Keyless *Keyless
	// Log is the PEM of the public key of a transparency log that must know of the signature;
	// if it is empty, it is one of the Trust. IgnoreLog asks for none.
	Log       string
	IgnoreLog bool
	// Bound asks that what is signed names the repository that the image is in, so that a copy with
	// its signatures needs new ones.
	Bound bool
	// Stamps is the PEM of a timestamp authority: its root, perhaps with what is below. There must
	// be a timestamp by it then, which says when the signature was made. If it is empty, a
	// timestamp by one of the Trust says so where no log does.
	Stamps string
	// CertificateLog is the PEM of the public key of a log of certificates, in place of those of
	// the Trust. LoggedCertificates asks that such a log knows of certificates under a Chain.
	CertificateLog     string
	LoggedCertificates bool
}

// A Format is how what is signed stands beside an image.
type Format string

// The formats: layers under the tags sha256-….sig and sha256-….att; bundles of Sigstore, which
// refer to the image; either of them; signatures of Notary, which refer to it too.
const (
	Layers    Format = ""
	Bundles   Format = "bundles"
	AnyFormat Format = "any"
	Notation  Format = "notation"
)

// How much a policy may say.
const (
	maxBlocks = 10
	maxPEM    = 64 << 10
	maxRSA    = 8192
)

// A Verifier proves signatures of an attestor.
type Verifier struct {
	attestor    Attestor
	hash        crypto.Hash
	key         crypto.PublicKey     // of all signatures; or nil
	keyTime     period               // when it counts: of its certificate under a chain, too
	chain       authority            // over the certificates beside signatures, if there is no key
	identity    *certificateIdentity // of a keyless attestor
	authorities []authority
	logs        map[string]*root.TransparencyLog // by their names
	log         *root.TransparencyLog            // in place of those; or nil
	stampers    []stamper
	ctLogs      map[string]*root.TransparencyLog // of certificates
	// Of an attestor of Notary: its certificates, and lists of what is revoked.
	store []*x509.Certificate
	lists []*x509.RevocationList
	now   func() time.Time
}

// NewVerifier reads an attestor, with whom else is trusted.
func NewVerifier(a Attestor, trust *Trust, now func() time.Time) (*Verifier, error) {
	v := &Verifier{attestor: a, stampers: trust.stampers, ctLogs: trust.certificates, now: now}
	if trust.unknown != nil && a.asksTrust() {
		return nil, trust.unknown
	}
	var err error
	if v.hash, err = hashNamed(a.Hash); err != nil {
		return nil, err
	}
	switch {
	case a.IgnoreLog:
	case a.Log != "":
		if v.log, err = readLog(a.Log); err != nil {
			return nil, fmt.Errorf("the key of the log: %w", err)
		}
	default:
		v.logs = trust.logs
	}
	if a.Stamps != "" {
		if v.stampers, err = readStampers(a.Stamps); err != nil {
			return nil, err
		}
	}
	if a.CertificateLog != "" {
		log, err := readLog(a.CertificateLog)
		if err != nil {
			return nil, fmt.Errorf("the key of the log of certificates: %w", err)
		}
		v.ctLogs = map[string]*root.TransparencyLog{hex.EncodeToString(log.ID): log}
	}
	switch {
	case a.Format == Notation:
		err = v.notaryStore(a)
	case a.Keyless != nil && a.Key+a.Certificate+a.Chain != "":
		err = errors.New("an attestor is keyless, or has a key or certificates")
	case a.Keyless != nil:
		err = v.keyless(*a.Keyless, trust)
	case a.Key != "" && a.Certificate == "" && a.Chain == "":
		v.key, v.keyTime, err = readTimedKey(a.Key)
	case a.Key != "":
		err = errors.New("an attestor has a key or certificates, not both")
	case a.Certificate != "":
		err = v.holder(a.Certificate, a.Chain)
	case a.Chain != "":
		v.chain, err = readAuthority(a.Chain, v.now)
	default:
		err = errors.New("an attestor needs a key or a certificate; without one anybody could sign")
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// asksTrust tells whether what the attestor proves may depend on whom else is trusted: it does not
// where all is in the policy.
func (a Attestor) asksTrust() bool {
	switch {
	case a.Format == Notation:
		return false
	case !a.IgnoreLog && a.Log == "", a.Keyless != nil && a.Keyless.Roots == "":
		return true
	case a.CertificateLog == "" && (a.LoggedCertificates || a.Keyless != nil && !a.Keyless.IgnoreSCT):
		return true
	}
	// A timestamp may say when a certificate signed, where no log does.
	return a.IgnoreLog && a.Stamps == "" && a.Key == ""
}

func (v *Verifier) keyless(k Keyless, trust *Trust) (err error) {
	if v.identity, err = newIdentity(k); err != nil {
		return err
	}
	if v.authorities = trust.authorities; k.Roots == "" {
		return nil
	}
	own, err := readAuthority(k.Roots, v.now)
	v.authorities = []authority{own}
	return err
}

// holder takes the key of a certificate, which is only that where there is no chain.
func (v *Verifier) holder(certificate, chain string) error {
	certificates, err := readCertificates(certificate)
	if err != nil {
		return err
	}
	leaf := certificates[0]
	if chain != "" {
		over, err := readAuthority(chain, v.now)
		if err != nil {
			return err
		}
		if _, err := over.issued(leaf, v.now()); err != nil {
			return fmt.Errorf("the certificate is not issued under its chain: %w", err)
		}
		v.keyTime = period{leaf.NotBefore, leaf.NotAfter}
	}
	v.key = leaf.PublicKey
	return supported(v.key)
}

func hashNamed(name string) (crypto.Hash, error) {
	switch name {
	case "", "sha256":
		return crypto.SHA256, nil
	case "sha224":
		return crypto.SHA224, nil
	case "sha384":
		return crypto.SHA384, nil
	case "sha512":
		return crypto.SHA512, nil
	}
	return 0, fmt.Errorf("the signature algorithm %q is not known; it is sha224, sha256, sha384 or sha512", name)
}

// blocks are the PEM blocks of a text, which may be in base64 as a whole.
func blocks(text string) ([]*pem.Block, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("the PEM has more than %d bytes", maxPEM)
	}
	if !strings.Contains(text, "-----BEGIN") {
		if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
			text = string(plain)
		}
	}
	var out []*pem.Block
	for rest := []byte(text); ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			return out, nil
		}
		if out = append(out, b); len(out) > maxBlocks {
			return nil, fmt.Errorf("the PEM has more than %d blocks", maxBlocks)
		}
	}
}

// readTimedKey is a key, and the time that it counts for.
func readTimedKey(text string) (crypto.PublicKey, period, error) {
	found, err := blocks(text)
	if err != nil {
		return nil, period{}, err
	}
	if len(found) != 1 || found[0].Type != "PUBLIC KEY" {
		return nil, period{}, errors.New("the public key is no PEM block PUBLIC KEY")
	}
	key, err := x509.ParsePKIXPublicKey(found[0].Bytes)
	if err != nil {
		return nil, period{}, fmt.Errorf("the public key: %w", err)
	}
	counts, err := windowOf(found[0])
	if err != nil {
		return nil, period{}, err
	}
	return key, counts, supported(key)
}

func supported(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return nil
	case *rsa.PublicKey:
		if k.N.BitLen() < 2048 {
			return fmt.Errorf("an RSA key of %d bits proves nothing; 2048 at least", k.N.BitLen())
		}
		return affordable(key)
	}
	return fmt.Errorf("a public key of the type %T is not supported", key)
}

// affordable refuses a key that is so large that to try it would keep a processor busy for
// seconds: a certificate beside a signature may be anybody's.
func affordable(key crypto.PublicKey) error {
	if k, ok := key.(*rsa.PublicKey); ok && k.N.BitLen() > maxRSA {
		return fmt.Errorf("an RSA key of %d bits is not tried; %d at most", k.N.BitLen(), maxRSA)
	}
	return nil
}

func readCertificates(text string) ([]*x509.Certificate, error) {
	found, err := blocks(text)
	if err != nil {
		return nil, err
	}
	var out []*x509.Certificate
	for _, b := range found {
		if b.Type == listBlock {
			continue
		}
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("there is a PEM block %s among the certificates", b.Type)
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a certificate: %w", err)
		}
		if err := affordable(c.PublicKey); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no certificate in the PEM")
	}
	return out, nil
}
