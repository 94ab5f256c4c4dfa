package interp

import (
	"context"
	"errors"
)

// A Registry tells what is proven of images. Its methods are called by several goroutines
// at once.
type Registry interface {
	// Pinned is the image that a reference means, as repository@digest: of a tag, what the
	// registry says now.
	Pinned(ctx context.Context, reference string, with Access) (string, error)
	// Signed is nil where a signature of an image, which is pinned, is an attestor's.
	Signed(ctx context.Context, image string, by Attestor, with Access) error
	// Attested are the statements of a type that an attestor attests of an image, which is
	// pinned, in the order of the registry; none is an error. What is attested is their
	// predicate.
	Attested(ctx context.Context, image, kind string, by Attestor, with Access) ([]map[string]any, error)
}

// Access is how a registry is asked.
type Access struct {
	Credentials any  // as a policy has them, its variables filled in
	Fresh       bool // what was proven before does not count
	// Namespace is where the pull secrets are of a policy of a namespace, which reaches no
	// others; "" for one of the cluster.
	Namespace string
	// PodSecrets are the pull secrets of the Pod that is to run the images, in PodNamespace.
	PodSecrets   []string `json:",omitempty"`
	PodNamespace string   `json:",omitempty"`
}

// An Attestor is who must have signed: the holder of a key or of certificates, or whoever has a
// certificate for an identity.
type Attestor struct {
	Key, Certificate, Chain string // PEM
	Keyless                 *Keyless
	Algorithm               string
	Annotations             map[string]string
	Repository              string
	TagPrefix               string // of the tags that signatures have
	Format                  SignatureFormat
	// TrustedRoot is a trusted root of Sigstore, as JSON, in place of the public one.
	TrustedRoot string
	// IgnoreLog tells that no transparency log must know of the signature. LogKey is the public
	// key of the one that must; that of the public log if it is empty.
	IgnoreLog bool
	LogKey    string
	// Stamps are the certificates of a timestamp authority that must have seen the signature, in
	// PEM. CertificateLog is the public key of a log of certificates; "" for the public ones.
	Stamps, CertificateLog string
	// LoggedCertificates tells that such a log must know of the certificates under Chain.
	LoggedCertificates bool
}

// A SignatureFormat is how what is signed stands beside an image.
type SignatureFormat string

// The formats: layers under tags, as cosign has them; bundles of Sigstore; either of them;
// signatures of Notary, whose attestors have a Chain.
const (
	Layers          SignatureFormat = ""
	Bundles         SignatureFormat = "bundles"
	LayersOrBundles SignatureFormat = "any"
	Notation        SignatureFormat = "notation"
)

// A Keyless attestor signs by a certificate for an identity: the issuer and the subject as
// patterns with * and ?, and as regular expressions.
type Keyless struct {
	Issuer, IssuerRegExp, Subject, SubjectRegExp string
	Roots                                        string // PEM of authorities; "" for the public ones
	IgnoreSCT                                    bool   // no log of certificates need know of the certificate
	// Exact tells that Issuer and Subject are not patterns, and that what is given must hold
	// beside the regular expressions.
	Exact bool
	// Extensions are those that the certificate must have, as patterns, by their numbers or
	// names.
	Extensions map[string]string
}

// ErrRefused is the error of a registry that nobody here may ask: what it would say is not known, and
// will not be.
var ErrRefused = errors.New("the registry may not be asked")

// ErrUnreachable is the error of a registry that cannot be asked now: what it would say is not
// known.
var ErrUnreachable = errors.New("the registry cannot be asked")
