package images

import (
	"crypto/x509"
	"time"
)

// Key is what the PEM of a public key says: until when it counts; zero for ever.
func Key(text string) (until time.Time, err error) {
	_, counts, err := readTimedKey(text)
	return counts.End, err
}

// Certificates are those of a text, and when the first of its lists of revoked certificates ends; zero
// where there are none.
func Certificates(text string) (all []*x509.Certificate, lists time.Time, err error) {
	if all, err = readCertificates(text); err != nil {
		return nil, lists, err
	}
	revoked, err := readRevoked(text)
	for _, list := range revoked {
		if !list.NextUpdate.IsZero() && (lists.IsZero() || list.NextUpdate.Before(lists)) {
			lists = list.NextUpdate
		}
	}
	return all, lists, err
}
