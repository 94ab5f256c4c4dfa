package proven

import (
	"time"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/interp"
)

// Verifier proves what is an attestor's. Whom it trusts beside is trust, unless the attestor has a
// trusted root of its own. Where it is bound, what is signed names the image's repository.
func Verifier(by interp.Attestor, trust *images.Trust, bound bool, now func() time.Time) (*images.Verifier, error) {
	if by.TrustedRoot != "" {
		var err error
		if trust, err = images.ReadTrust([]byte(by.TrustedRoot)); err != nil {
			return nil, err
		}
	}
	a := attestorOf(by)
	a.Bound = bound
	return images.NewVerifier(a, trust, now)
}

// attestorOf is an attestor as the verifier has it.
func attestorOf(by interp.Attestor) images.Attestor {
	a := images.Attestor{
		Key: by.Key, Certificate: by.Certificate, Chain: by.Chain, Hash: by.Algorithm, Annotations: by.Annotations, Repository: by.Repository,
		TagPrefix: by.TagPrefix, Format: images.Format(by.Format), Log: by.LogKey, IgnoreLog: by.IgnoreLog,
		Stamps: by.Stamps, CertificateLog: by.CertificateLog, LoggedCertificates: by.LoggedCertificates,
	}
	if k := by.Keyless; k != nil {
		a.Keyless = &images.Keyless{
			Issuer: k.Issuer, IssuerRegExp: k.IssuerRegExp, Subject: k.Subject, SubjectRegExp: k.SubjectRegExp, Exact: k.Exact,
			Extensions: k.Extensions, Roots: k.Roots, IgnoreSCT: k.IgnoreSCT,
		}
	}
	return a
}
