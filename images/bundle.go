package images

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// A bundle of Sigstore has an envelope with an in-toto statement, the certificate of who signed
// it, and entries of logs. It is the one layer of an artifact that refers to the image.
//
//	cosign sign --new-bundle-format ghcr.io/acme/web@sha256:…    predicateType https://sigstore.dev/cosign/sign/v1
//	gh attestation, cosign attest                                 predicateType of what is attested
//
// It is read into the layer that it would be under a tag, and verified as that is. What counts of
// a log is its promise, which signs the time too; a proof of inclusion beside one is not looked at. A
// log that promises nothing has that alone (log.go).

// bundleMedia begins the types of artifacts that are bundles.
const bundleMedia = "application/vnd.dev.sigstore.bundle"

// maxEntries is how many logs may know of a bundle.
const maxEntries = 10

// noneThere is the error of an image that has nothing beside it.
type noneThere string

// Error implements error.
func (e noneThere) Error() string { return string(e) }

// isNone tells that there is nothing in one format, where others may have it.
func isNone(err error, f Format) bool {
	var none noneThere
	return f == AnyFormat && errors.As(err, &none)
}

// bundles are those that refer to an image. One that cannot be read is among them: it is anybody's,
// and proves nothing.
func (v *Verifier) bundles(ctx context.Context, r Registry, image Image) ([]layer, error) {
	at, err := repositoryNamed(cmp.Or(v.attestor.Repository, image.repository.Name()), r)
	if err != nil {
		return nil, err
	}
	layers, err := r.referrers(ctx, at.Digest(image.Digest()), func(media string) bool { return strings.HasPrefix(media, bundleMedia) })
	switch {
	case errors.Is(err, errAbsent), err == nil && len(layers) == 0:
		return nil, noneThere(fmt.Sprintf("no bundle refers to %s in %s", image, at.Name()))
	case err != nil:
		return nil, fmt.Errorf("what refers to %s in %s: %w", image, at.Name(), err)
	}
	return layers, nil
}

// referrers are the layers of artifacts of some types that refer to an image, as the registry says.
func (r Registry) referrers(ctx context.Context, image name.Digest, wanted func(media string) bool) ([]layer, error) {
	var out []layer
	err := r.call(ctx, func(options []remote.Option) error {
		index, err := remote.Referrers(image, options...)
		if err != nil {
			return err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return err
		}
		if len(manifest.Manifests) > maxLayers {
			return fmt.Errorf("%s has %d referrers, and %d at most are looked at", image, len(manifest.Manifests), maxLayers)
		}
		puller, err := remote.NewPuller(options...)
		if err != nil {
			return err
		}
		for _, d := range manifest.Manifests {
			if !wanted(d.ArtifactType) {
				continue
			}
			found, err := puller.Get(ctx, image.Context().Digest(d.Digest.String()))
			if err != nil {
				return err
			}
			artifact, err := found.Image()
			if err != nil {
				return err
			}
			of, err := artifact.Manifest()
			if err != nil {
				return err
			}
			if len(of.Layers) != 1 {
				continue // it is none
			}
			blob, err := puller.Layer(context.WithValue(ctx, limitOfBlob{}, int64(maxAttestation)+1), image.Context().Digest(of.Layers[0].Digest.String()))
			if err != nil {
				return err
			}
			l := layer{of: blob, budget: r.Budget, media: string(of.Layers[0].MediaType), artifact: found.Descriptor}
			l.artifact.Size = int64(len(found.Manifest))
			if of.Subject != nil {
				l.subject = of.Subject.Digest
			}
			out = append(out, l)
		}
		return nil
	})
	return out, err
}

// bundled is what a bundle attests; any type will do if kind is empty.
func (v *Verifier) bundled(l layer, image Image, kind string) (Statement, error) {
	data, done, err := l.read(maxAttestation)
	defer done()
	if err != nil {
		return Statement{}, err
	}
	read, e, err := readBundle(data)
	if err != nil {
		return Statement{}, err
	}
	return v.enveloped(read, e, nil, image, kind)
}

// readBundle is a bundle as the layer that it would be, and its envelope.
func readBundle(data []byte) (layer, dsse.Envelope, error) {
	var b protobundle.Bundle
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &b); err != nil {
		return layer{}, dsse.Envelope{}, fmt.Errorf("the bundle is no JSON: %w", err)
	}
	with := b.GetVerificationMaterial()
	chain := with.GetX509CertificateChain().GetCertificates()
	switch {
	case !strings.HasPrefix(b.GetMediaType(), bundleMedia):
		return layer{}, dsse.Envelope{}, fmt.Errorf("%q is the type of no bundle", b.GetMediaType())
	case b.GetDsseEnvelope() == nil:
		return layer{}, dsse.Envelope{}, errors.New("the bundle has no envelope")
	case len(b.GetDsseEnvelope().GetSignatures()) > maxSignatures:
		return layer{}, dsse.Envelope{}, fmt.Errorf("it has more than %d signatures", maxSignatures)
	case len(with.GetTlogEntries()) > maxEntries:
		return layer{}, dsse.Envelope{}, fmt.Errorf("the bundle has more than %d entries of logs", maxEntries)
	case len(with.GetTimestampVerificationData().GetRfc3161Timestamps()) > maxStamps:
		return layer{}, dsse.Envelope{}, fmt.Errorf("the bundle has more than %d timestamps", maxStamps)
	case len(chain) > maxBlocks:
		return layer{}, dsse.Envelope{}, fmt.Errorf("the bundle has more than %d certificates", maxBlocks)
	}
	out := layer{annotations: map[string]string{}, logged: with.GetTlogEntries()}
	for _, e := range out.logged {
		if e.KindVersion = kindOf(e.GetCanonicalizedBody()); len(e.GetInclusionPromise().GetSignedEntryTimestamp()) > 0 {
			e.InclusionProof = nil // which may be of any length
		}
	}
	// Those that promise say a time too.
	slices.SortStableFunc(out.logged, func(a, b *rekor.TransparencyLogEntry) int {
		return cmp.Compare(len(b.GetInclusionPromise().GetSignedEntryTimestamp()), len(a.GetInclusionPromise().GetSignedEntryTimestamp()))
	})
	if c := with.GetCertificate(); c != nil {
		chain = []*common.X509Certificate{c}
	}
	for i, c := range chain {
		text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.GetRawBytes()}))
		if i == 0 {
			out.annotations[certificateKey] = text
			continue
		}
		out.annotations[chainKey] += text
	}
	for _, s := range with.GetTimestampVerificationData().GetRfc3161Timestamps() {
		out.stamps = append(out.stamps, s.GetSignedTimestamp())
	}
	e := dsse.Envelope{PayloadType: b.GetDsseEnvelope().GetPayloadType(), Payload: base64.StdEncoding.EncodeToString(b.GetDsseEnvelope().GetPayload())}
	for _, s := range b.GetDsseEnvelope().GetSignatures() {
		e.Signatures = append(e.Signatures, dsse.Signature{Sig: base64.StdEncoding.EncodeToString(s.GetSig())})
	}
	return out, e, nil
}

// signedByBundle is Signed for bundles: any statement about the image by the attestor will do,
// whatever it says.
func (v *Verifier) signedByBundle(ctx context.Context, r Registry, image Image) error {
	layers, err := v.bundles(ctx, r, image)
	if err != nil {
		return err
	}
	return anyCounts(layers, "bundle of "+image.String(), func(l layer) error {
		s, err := v.bundled(l, image, "")
		if err != nil {
			return err
		}
		return v.annotated(s.annotations)
	})
}
