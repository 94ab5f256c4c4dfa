package images

import (
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// A Keyless attestor signs by a certificate that was issued for some minutes to an identity,
// of which the issuer says so.
//
//	subject: https://github.com/acme/web/.github/workflows/release.yaml@refs/heads/main
//	issuer:  https://token.actions.githubusercontent.com
type Keyless struct {
	// Issuer and Subject are patterns with * and ?, the others regular expressions. Of the
	// issuer both must hold, if they are there; of the subject one, for one of the names in
	// the certificate. There is an issuer or a subject at least.
	Issuer, IssuerRegExp, Subject, SubjectRegExp string
	// Exact tells that Issuer and Subject are not patterns, and that each of the four that is
	// there must hold.
	Exact bool
	// Extensions are what the certificate must say, as patterns, by the numbers of Fulcio's
	// extensions or by their names, as githubWorkflowRef.
	Extensions map[string]string
	// Roots is the PEM of authorities in place of those of the Trust.
	Roots string
	// IgnoreSCT asks for no proof that a log knows of the certificate.
	IgnoreSCT bool
}

// certificateIdentity is whom a certificate is for.
type certificateIdentity struct {
	Keyless
	issuer, subject *regexp.Regexp
}

func newIdentity(k Keyless) (*certificateIdentity, error) {
	out := &certificateIdentity{Keyless: k}
	if k.Issuer+k.IssuerRegExp+k.Subject+k.SubjectRegExp == "" {
		return nil, errors.New("a keyless attestor needs an issuer or a subject; without one anybody could sign")
	}
	for _, one := range []struct {
		text string
		into **regexp.Regexp
	}{{k.IssuerRegExp, &out.issuer}, {k.SubjectRegExp, &out.subject}} {
		if one.text == "" {
			continue
		}
		read, err := regexp.Compile(one.text)
		if err != nil {
			return nil, err
		}
		*one.into = read
	}
	return out, nil
}

// is is nil if a certificate is for the identity.
func (i *certificateIdentity) is(c *x509.Certificate) error {
	issuer, err := issuerOf(c)
	if err != nil {
		return err
	}
	if i.Issuer != "" && !i.named(i.Issuer, issuer) || i.issuer != nil && !i.issuer.MatchString(issuer) {
		return fmt.Errorf("the issuer of its identity is %q", issuer)
	}
	if err := i.extended(c); err != nil {
		return err
	}
	if i.Subject == "" && i.subject == nil {
		return nil
	}
	names := namesOf(c)
	if !slices.ContainsFunc(names, i.isSubject) {
		return fmt.Errorf("its subject is %q", strings.Join(names, ", "))
	}
	return nil
}

// named tells whether a text is the one that the identity names.
func (i *certificateIdentity) named(want, text string) bool {
	if i.Exact {
		return want == text
	}
	return wild(want, text)
}

func (i *certificateIdentity) isSubject(name string) bool {
	if i.Exact {
		return (i.Subject == "" || i.Subject == name) && (i.subject == nil || i.subject.MatchString(name))
	}
	return i.Subject != "" && wild(i.Subject, name) || i.subject != nil && i.subject.MatchString(name)
}

// The extensions of Fulcio's certificates.
func issuerExtension() asn1.ObjectIdentifier {
	return asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 8}
}

func issuerExtensionBefore() asn1.ObjectIdentifier {
	return asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1}
}

// issuerOf is who says whom a certificate is for. It may stand there in two forms, which must
// then be one.
func issuerOf(c *x509.Certificate) (string, error) {
	var found []string
	for _, e := range c.Extensions {
		switch {
		case e.Id.Equal(issuerExtensionBefore()):
			found = append(found, string(e.Value))
		case e.Id.Equal(issuerExtension()):
			var text string
			if rest, err := asn1.Unmarshal(e.Value, &text); err != nil || len(rest) > 0 {
				return "", errors.New("the issuer in its certificate cannot be read")
			}
			found = append(found, text)
		}
	}
	switch found = slices.Compact(found); len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("its certificate names several issuers: %s", strings.Join(found, ", "))
}

// namesOf are the alternative names of a subject.
func namesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.EmailAddresses)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if other, err := cryptoutils.UnmarshalOtherNameSAN(c.Extensions); err == nil {
		names = append(names, other)
	}
	return names
}

// wild tells whether a text matches a pattern, in which * is any text and ? any character.
func wild(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	star, after := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, after = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i++
			j++
		case star >= 0:
			after++
			i, j = star+1, after
		default:
			return false
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}

// issued is nil if a certificate was issued under authorities that are trusted at a time, and,
// unless that is ignored, a log of certificates knows of it.
func (v *Verifier) issued(c *x509.Certificate, at time.Time) error {
	c = legible(c)
	var why error
	for _, a := range v.authorities {
		if !a.has(at) {
			continue
		}
		chains, err := a.issued(c, at)
		if err != nil {
			why = err
			continue
		}
		if v.identity.IgnoreSCT {
			return nil
		}
		if why = v.known(chains); why == nil {
			return nil
		}
	}
	if why == nil {
		return fmt.Errorf("nobody is trusted to issue certificates at %s", at.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("the certificate beside it: %w", why)
}

// legible is a certificate of which the name is not critical, where it has another that is read here and
// that Go does not know.
func legible(c *x509.Certificate) *x509.Certificate {
	if _, err := cryptoutils.UnmarshalOtherNameSAN(c.Extensions); err != nil {
		return c
	}
	out := *c
	out.UnhandledCriticalExtensions = slices.DeleteFunc(slices.Clone(c.UnhandledCriticalExtensions), cryptoutils.SANOID.Equal)
	return &out
}

// known is nil if a log of certificates promised that it takes one in, which was issued by these ways.
func (v *Verifier) known(chains [][]*x509.Certificate) error {
	if err := verify.VerifySignedCertificateTimestamp(chains, 1, &material{certificates: v.ctLogs}); err != nil {
		return fmt.Errorf("no log of certificates that is trusted knows of it: %w", err)
	}
	return nil
}
