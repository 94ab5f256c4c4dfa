package images

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Who revokes certificates says so in lists, which stand among the certificates of a policy as PEM
// blocks X509 CRL. None is fetched: certificates name hosts, and anybody may write a certificate.
// Where there is a list of an issuer, what it issued must not be in it, and the list must not be
// older than it says that it may be.

// readRevoked reads the lists of a text.
func readRevoked(text string) ([]*x509.RevocationList, error) {
	found, err := blocks(text)
	if err != nil {
		return nil, err
	}
	var out []*x509.RevocationList
	for _, b := range found {
		if b.Type != listBlock {
			continue
		}
		list, err := x509.ParseRevocationList(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a list of revoked certificates: %w", err)
		}
		out = append(out, list)
	}
	return out, nil
}

// listBlock is the type of PEM blocks that are lists of revoked certificates.
const listBlock = "X509 CRL"

// unrevoked are those chains of which nothing is revoked, or why there are none.
func unrevoked(lists []*x509.RevocationList, chains [][]*x509.Certificate, now time.Time) ([][]*x509.Certificate, error) {
	if len(lists) == 0 {
		return chains, nil
	}
	var out [][]*x509.Certificate
	err := errors.New("there is no chain")
	for _, chain := range chains {
		if bad := revokedIn(lists, chain, now); bad != nil {
			err = bad
			continue
		}
		out = append(out, chain)
	}
	if len(out) == 0 {
		return nil, err
	}
	return out, nil
}

// revokedIn is why a chain, which begins with its leaf, does not count.
func revokedIn(lists []*x509.RevocationList, chain []*x509.Certificate, now time.Time) error {
	for i, c := range chain {
		issuer := chain[min(i+1, len(chain)-1)] // a root issued itself
		for _, list := range lists {
			if !bytes.Equal(list.RawIssuer, issuer.RawSubject) {
				continue
			}
			if err := list.CheckSignatureFrom(issuer); err != nil {
				return fmt.Errorf("the list of revoked certificates of %s is not signed by it: %w", issuer.Subject, err)
			}
			if !list.NextUpdate.IsZero() && now.After(list.NextUpdate) {
				return fmt.Errorf("the list of revoked certificates of %s ended at %s; put a newer one there", issuer.Subject, list.NextUpdate.UTC().Format(time.RFC3339))
			}
			for _, revoked := range list.RevokedCertificateEntries {
				if revoked.SerialNumber.Cmp(c.SerialNumber) == 0 {
					return fmt.Errorf("the certificate of %s was revoked at %s", c.Subject, revoked.RevocationTime.UTC().Format(time.RFC3339))
				}
			}
		}
	}
	return nil
}
