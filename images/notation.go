package images

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	notation "github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// A signature of Notary (notation sign) refers to the image: an envelope, JWS or COSE, with the
// certificates of who signed from their own to the root, which names the manifest that is signed.
//
//	{"targetArtifact": {"mediaType": …, "digest": "sha256:…", "size": 942, "annotations": {…}}}
//
// An attestation is an artifact that refers to the image, and has a signature that refers to it.
const (
	notationMedia   = "application/vnd.cncf.notary.signature"
	notationPayload = "application/vnd.cncf.notary.payload.v1+json"
	maxNotation     = 256 << 10
	maxReferring    = 10 // attestations of one type
)

// A signedArtifact is what a signature of Notary is of.
type signedArtifact struct {
	Target struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Annotations map[string]string `json:"annotations"`
	} `json:"targetArtifact"`
}

// notaryStore takes the certificates of an attestor: one of them must be in the chain of who signs.
func (v *Verifier) notaryStore(a Attestor) (err error) {
	switch {
	case a.Key != "" || a.Keyless != nil:
		return errors.New("signatures of Notary are by certificates")
	case a.Bound:
		return errors.New("signatures of Notary name no repository (--bind-repository)")
	}
	text := a.Certificate + "\n" + a.Chain
	if v.store, err = readCertificates(text); err != nil {
		return err
	}
	v.lists, err = readRevoked(text)
	return err
}

// signedByNotation is Signed for signatures of Notary.
func (v *Verifier) signedByNotation(ctx context.Context, r Registry, image Image) error {
	at, err := repositoryNamed(cmp.Or(v.attestor.Repository, image.repository.Name()), r)
	if err != nil {
		return err
	}
	target, err := r.manifest(ctx, image.repository.Digest(image.Digest()))
	if err != nil {
		return fmt.Errorf("the manifest of %s: %w", image, err)
	}
	return v.notarizedAt(ctx, r, at, target)
}

// manifest is what a digest names: its media type, and its size.
func (r Registry) manifest(ctx context.Context, at name.Digest) (v1.Descriptor, error) {
	var out v1.Descriptor
	err := r.call(ctx, func(options []remote.Option) error {
		found, err := remote.Get(at, options...)
		if err == nil {
			out = found.Descriptor
			out.Size = int64(len(found.Manifest))
		}
		return err
	})
	return out, err
}

// notarizedAt is nil where one of the signatures in a repository that refer to an artifact is the
// attestor's.
func (v *Verifier) notarizedAt(ctx context.Context, r Registry, at name.Repository, target v1.Descriptor) error {
	what := at.Digest(target.Digest.String())
	layers, err := r.referrers(ctx, what, func(media string) bool { return media == notationMedia })
	switch {
	case errors.Is(err, errAbsent), err == nil && len(layers) == 0:
		return noneThere(fmt.Sprintf("no signature of Notary refers to %s", what))
	case err != nil:
		return fmt.Errorf("what refers to %s: %w", what, err)
	}
	return anyCounts(layers, "signature of "+what.String(), func(l layer) error { return v.notarized(l, target) })
}

func (v *Verifier) notarized(l layer, target v1.Descriptor) error {
	data, done, err := l.read(maxNotation)
	defer done()
	if err != nil {
		return err
	}
	return v.notation(data, l.media, target)
}

// notation is nil if an envelope is a signature of an artifact by the attestor: as Notary's trust
// level strict has it, but for revocation, of which lists of the attestor's tell.
func (v *Verifier) notation(data []byte, media string, target v1.Descriptor) error {
	if err := affordableChain(data, media); err != nil {
		return err
	}
	envelope, err := notation.ParseEnvelope(media, data)
	if err != nil {
		return fmt.Errorf("its envelope: %w", err)
	}
	content, err := envelope.Verify()
	if err != nil {
		return fmt.Errorf("its envelope: %w", err)
	}
	info := &content.SignerInfo
	if info.SignedAttributes.SigningScheme != notation.SigningSchemeX509 {
		return fmt.Errorf("its signing scheme is %q", info.SignedAttributes.SigningScheme)
	}
	for _, a := range info.SignedAttributes.ExtendedAttributes {
		if a.Critical {
			return fmt.Errorf("who verifies it must understand its attribute %v", a.Key)
		}
	}
	if _, err := notation.VerifyAuthenticity(info, v.store); err != nil {
		return errors.New("it is not by the attestor's certificates, nor by one issued under them")
	}
	if err := revokedIn(v.lists, info.CertificateChain, v.now()); err != nil {
		return err
	}
	if expiry := info.SignedAttributes.Expiry; !expiry.IsZero() && !v.now().Before(expiry) {
		return fmt.Errorf("it expired at %s", expiry.UTC().Format(time.RFC3339))
	}
	if err := v.validChain(info); err != nil {
		return err
	}
	var payload signedArtifact
	if content.Payload.ContentType != notationPayload {
		return fmt.Errorf("its payload is of the type %q", content.Payload.ContentType)
	}
	if err := json.Unmarshal(content.Payload.Content, &payload); err != nil {
		return fmt.Errorf("its payload is no JSON: %w", err)
	}
	signed := payload.Target
	if signed.Digest != target.Digest.String() || signed.Size != target.Size || signed.MediaType != string(target.MediaType) {
		return fmt.Errorf("it is of another artifact, %s of the type %q", signed.Digest, signed.MediaType)
	}
	return v.annotated(signed.Annotations)
}

// validChain is nil if all certificates of a chain were valid when the signature was made: at the
// time of a timestamp, as exact as that is, or now where the attestor asks for none.
func (v *Verifier) validChain(info *notation.SignerInfo) error {
	first, last := v.now(), v.now()
	if v.attestor.Stamps != "" {
		if len(info.UnsignedAttributes.TimestampSignature) == 0 {
			return errNoStamp
		}
		stamp, err := v.stampers[0].saw(info.UnsignedAttributes.TimestampSignature, info.Signature)
		if err != nil {
			return err
		}
		first, last = stamp.Value.Add(-stamp.Accuracy), stamp.Value.Add(stamp.Accuracy)
	}
	for _, c := range info.CertificateChain {
		if first.Before(c.NotBefore) || last.After(c.NotAfter) {
			return fmt.Errorf("the certificate of %s counts from %s until %s, and it was signed at %s", c.Subject, c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339), first.UTC().Format(time.RFC3339))
		}
	}
	// The way to a certificate of the attestor's once more, as others go it: with the limits that
	// authorities set to the names below them.
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range v.store {
		roots.AddCert(c)
	}
	for _, c := range info.CertificateChain[1:] {
		between.AddCert(c)
	}
	_, err := info.CertificateChain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: first, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// affordableChain looks at the certificates in an envelope before anything is tried with them: how
// many there are, and how large their keys.
func affordableChain(data []byte, media string) error {
	var raw [][]byte
	switch media {
	case jws.MediaTypeEnvelope:
		var e struct {
			Header struct {
				Chain [][]byte `json:"x5c"`
			} `json:"header"`
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("its envelope is no JSON: %w", err)
		}
		raw = e.Header.Chain
	case cose.MediaTypeEnvelope:
		var e struct {
			_         struct{} `cbor:",toarray"`
			Protected cbor.RawMessage
			Header    map[any]cbor.RawMessage
			Payload   cbor.RawMessage
			Signature cbor.RawMessage
		}
		const chainLabel = uint64(33)
		if err := cbor.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("its envelope is no COSE: %w", err)
		}
		if err := cbor.Unmarshal(e.Header[chainLabel], &raw); err != nil {
			return fmt.Errorf("its envelope has no chain of certificates: %w", err)
		}
	default:
		return fmt.Errorf("its envelope is of the type %q", media)
	}
	if len(raw) > maxBlocks {
		return fmt.Errorf("it has more than %d certificates", maxBlocks)
	}
	for _, der := range raw {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("a certificate in it: %w", err)
		}
		if err := affordable(c.PublicKey); err != nil {
			return err
		}
	}
	return nil
}

// attestedByNotation are the artifacts of a type that refer to the image. Each must be signed by
// the attestor, and be a map in JSON.
func (v *Verifier) attestedByNotation(ctx context.Context, r Registry, image Image, kind string) ([]Statement, error) {
	at, err := repositoryNamed(cmp.Or(v.attestor.Repository, image.repository.Name()), r)
	if err != nil {
		return nil, err
	}
	var others []string
	layers, err := r.referrers(ctx, at.Digest(image.Digest()), func(media string) bool {
		if media != kind {
			others = append(others, media)
		}
		return media == kind
	})
	others = slices.DeleteFunc(others, func(media string) bool { return media == notationMedia })
	switch {
	case errors.Is(err, errAbsent):
		return nil, noneThere(fmt.Sprintf("nothing refers to %s in %s", image, at.Name()))
	case err != nil:
		return nil, fmt.Errorf("what refers to %s in %s: %w", image, at.Name(), err)
	case len(layers) == 0:
		return nil, fmt.Errorf("there is no attestation of the type %s of %s, but of %s", kind, image, few(others))
	case len(layers) > maxReferring:
		return nil, fmt.Errorf("%d attestations of the type %s refer to %s, and %d at most are looked at", len(layers), kind, image, maxReferring)
	}
	var out []Statement
	size := 0
	for _, l := range layers {
		s, err := v.referring(ctx, r, at, l, image, kind)
		if err != nil {
			return nil, fmt.Errorf("an attestation of %s: %w", image, err)
		}
		if size += s.Size; size > maxAttested {
			return nil, tooMuchAttested(kind, image)
		}
		out = append(out, s)
	}
	return out, nil
}

// referring is what an artifact attests. It names the image itself: what a registry says of what
// refers to what is not signed.
func (v *Verifier) referring(ctx context.Context, r Registry, at name.Repository, l layer, image Image, kind string) (Statement, error) {
	if l.subject != image.digest {
		return Statement{}, errors.New("it is about another image")
	}
	if err := v.notarizedAt(ctx, r, at, l.artifact); err != nil {
		return Statement{}, err
	}
	data, done, err := l.read(maxAttestation)
	defer done()
	if err != nil {
		return Statement{}, err
	}
	var content map[string]any
	if err := kjson.Unmarshal(data, &content); err != nil || content == nil {
		return Statement{}, fmt.Errorf("it is no map in JSON: %w", cmpError(err, "it is null"))
	}
	return Statement{Type: kind, Content: map[string]any{"predicateType": kind, "predicate": content}, Size: len(data)}, nil
}

func cmpError(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}
