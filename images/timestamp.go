package images

import (
	"context"
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/notaryproject/tspclient-go"
)

// A timestamp authority signs that it saw a signature, and when (RFC 3161). Where a certificate
// lived for some minutes, that is how it is known that the signature was made while it did.
//
//	dev.sigstore.cosign/rfc3161timestamp: {"SignedRFC3161Timestamp": "MII…"}    beside a layer
//	timestampVerificationData: {rfc3161Timestamps: [{signedTimestamp: MII…}]}   in a bundle
const stampKey = "dev.sigstore.cosign/rfc3161timestamp"

const (
	maxStamp  = 64 << 10
	maxStamps = 10
)

// errNoStamp is the error of a signature without a timestamp.
var errNoStamp = errors.New("there is no timestamp beside the signature")

// A stamper is a timestamp authority, for its time.
type stamper struct {
	period
	roots *x509.CertPool
	// certificates are those of the authority itself and of all above it. A timestamp need not
	// have them.
	certificates []*x509.Certificate
}

// newStamper reads certificates, of which one at least signed itself, and one at most issues no
// others: that of the authority.
func newStamper(certificates []*x509.Certificate) (stamper, error) {
	out := stamper{roots: x509.NewCertPool(), certificates: certificates}
	leaves, found := 0, false
	for _, c := range certificates {
		if c.CheckSignatureFrom(c) == nil {
			out.roots.AddCert(c)
			found = true
			continue
		}
		if !c.IsCA {
			leaves++
		}
	}
	switch {
	case !found:
		return out, errors.New("there is no root among the certificates of the timestamp authority: none of them signed itself")
	case leaves > 1:
		return out, errors.New("the certificates are of several timestamp authorities")
	}
	return out, nil
}

// readStampers reads the PEM of a timestamp authority.
func readStampers(text string) ([]stamper, error) {
	certificates, err := readCertificates(text)
	if err != nil {
		return nil, err
	}
	one, err := newStamper(certificates)
	return []stamper{one}, err
}

// stampsOf are the timestamps beside a signature, each an answer of an authority.
func (l layer) stampsOf() ([][]byte, error) {
	text := l.annotations[stampKey]
	if text == "" {
		return l.stamps, nil
	}
	if len(text) > 2*maxStamp {
		return nil, fmt.Errorf("the timestamp beside it has more than %d bytes", 2*maxStamp)
	}
	var read struct {
		Stamp []byte `json:"SignedRFC3161Timestamp"`
	}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return nil, fmt.Errorf("the timestamp beside it is no JSON: %w", err)
	}
	return [][]byte{read.Stamp}, nil
}

// stamped is when one of some authorities saw a message. The others beside it do not count.
func stamped(stampers []stamper, answers [][]byte, message []byte) (time.Time, error) {
	err := errNoStamp
	if len(answers) > maxStamps {
		return time.Time{}, fmt.Errorf("there are more than %d timestamps beside it", maxStamps)
	}
	for _, answer := range answers {
		token, bad := tokenIn(answer)
		if bad != nil {
			err = bad
			continue
		}
		for _, s := range stampers {
			var stamp *tspclient.Timestamp
			if stamp, err = s.saw(token, message); err == nil {
				return stamp.Value, nil
			}
		}
	}
	return time.Time{}, err
}

// tokenIn is the token in the answer of an authority.
func tokenIn(answer []byte) ([]byte, error) {
	var read struct {
		Status asn1.RawValue
		Token  asn1.RawValue `asn1:"optional"`
	}
	if rest, err := asn1.Unmarshal(answer, &read); err != nil || len(rest) > 0 || len(read.Token.FullBytes) == 0 {
		return nil, errors.New("the timestamp beside it cannot be read")
	}
	return read.Token.FullBytes, nil
}

// saw is when the authority saw a message, as a token says. All is the sender's until the
// authority is known to have signed it.
func (s stamper) saw(token, message []byte) (*tspclient.Timestamp, error) {
	if len(token) > maxStamp {
		return nil, fmt.Errorf("the timestamp beside it has more than %d bytes", maxStamp)
	}
	read, err := tspclient.ParseSignedToken(token)
	if err != nil {
		return nil, fmt.Errorf("the timestamp beside it: %w", err)
	}
	if len(read.Certificates) > maxBlocks || len(read.SignerInfos) != 1 {
		return nil, fmt.Errorf("the timestamp beside it has %d certificates and %d signatures; it may have %d and one", len(read.Certificates), len(read.SignerInfos), maxBlocks)
	}
	for _, c := range read.Certificates {
		if err := affordable(c.PublicKey); err != nil {
			return nil, err
		}
	}
	info, err := read.Info()
	if err != nil {
		return nil, fmt.Errorf("the timestamp beside it: %w", err)
	}
	stamp, err := info.Validate(message)
	if err != nil {
		return nil, fmt.Errorf("the timestamp beside it is of another signature: %w", err)
	}
	if !s.has(stamp.Value) {
		return nil, fmt.Errorf("its timestamp authority is not trusted at %s", stamp.Value.UTC().Format(time.RFC3339))
	}
	read.Certificates = append(read.Certificates, s.certificates...)
	if _, err := read.Verify(context.Background(), x509.VerifyOptions{Roots: s.roots, CurrentTime: stamp.Value}); err != nil {
		return nil, fmt.Errorf("the timestamp beside it: %w", err)
	}
	return stamp, nil
}
