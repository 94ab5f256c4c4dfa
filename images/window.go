package images

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The headers that the PEM of a public key may have: from when until when what it signs counts.
// Other programs pass them over.
//
//	-----BEGIN PUBLIC KEY-----
//	Not-After: 2026-06-30T00:00:00Z
//
//	MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…
const (
	notBefore = "Not-Before"
	notAfter  = "Not-After"
)

// windowOf is the time of a key. A header in other letters is one that would be passed over.
func windowOf(b *pem.Block) (period, error) {
	var out period
	for header, text := range b.Headers {
		at, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
		switch {
		case header == notBefore && err == nil:
			out.Start = at
		case header == notAfter && err == nil:
			out.End = at
		case strings.EqualFold(header, notBefore), strings.EqualFold(header, notAfter):
			return out, fmt.Errorf("the public key's header %q is %q; write %s or %s, with a time as 2026-06-30T00:00:00Z", header, text, notBefore, notAfter)
		}
	}
	if !out.End.IsZero() && out.End.Before(out.Start) {
		return out, errors.New("the time of the public key ends before it begins")
	}
	return out, nil
}

// within is nil if a time is in that of the attestor's key.
func (v *Verifier) within(at time.Time) error {
	switch {
	case at.Before(v.keyTime.Start):
		return fmt.Errorf("it was signed at %s, and the attestor's key counts from %s on", at.UTC().Format(time.RFC3339), v.keyTime.Start.UTC().Format(time.RFC3339))
	case !v.keyTime.has(at):
		return fmt.Errorf("it was signed at %s, and the attestor's key counts until %s", at.UTC().Format(time.RFC3339), v.keyTime.End.UTC().Format(time.RFC3339))
	}
	return nil
}

// Until is when what is proven now may be so no longer, since the attestor's key ends and nobody
// says when it signed; zero if it stays.
func (v *Verifier) Until() time.Time {
	if v.attestor.IgnoreLog && v.attestor.Stamps == "" {
		return v.keyTime.End
	}
	return time.Time{}
}
