package images

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// A bundle of Sigstore has an envelope with an in-toto statement, the certificate of who signed
// it, and entries of logs. It is the one layer of an artifact that refers to the image.
//
//	cosign sign --new-bundle-format ghcr.io/acme/web@sha256:…    predicateType https://sigstore.dev/cosign/sign/v1
//	gh attestation, cosign attest                                 predicateType of what is attested
//
// It is read into the layer that it would be under a tag, and verified as that is. What counts of
// a log is its promise, which signs the time too; a proof of inclusion is not needed beside one. A
// log that promises nothing has that alone (checkpoint.go).
type sigstoreBundle struct {
	MediaType string `json:"mediaType"`
	Material  struct {
		Certificate *rawCertificate `json:"certificate"`
		Chain       struct {
			Certificates []rawCertificate `json:"certificates"`
		} `json:"x509CertificateChain"`
		Entries []struct {
			Index    number `json:"logIndex"`
			Time     number `json:"integratedTime"`
			Body     []byte `json:"canonicalizedBody"`
			LogID    keyID  `json:"logId"`
			Promised struct {
				Promise []byte `json:"signedEntryTimestamp"`
			} `json:"inclusionPromise"`
			Proof struct {
				Hashes     [][]byte `json:"hashes"`
				Checkpoint struct {
					Envelope string `json:"envelope"`
				} `json:"checkpoint"`
			} `json:"inclusionProof"`
		} `json:"tlogEntries"`
		Stamps struct {
			Answers []struct {
				Answer []byte `json:"signedTimestamp"`
			} `json:"rfc3161Timestamps"`
		} `json:"timestampVerificationData"`
	} `json:"verificationMaterial"`
	Envelope *envelope `json:"dsseEnvelope"`
}

type rawCertificate struct {
	Raw []byte `json:"rawBytes"`
}

type keyID struct {
	ID []byte `json:"keyId"`
}

// A number is one in the JSON of protocol buffers, where a large one is a text.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	read, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	*n = number(read)
	return err
}

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
func readBundle(data []byte) (layer, envelope, error) {
	var b sigstoreBundle
	if err := json.Unmarshal(data, &b); err != nil {
		return layer{}, envelope{}, fmt.Errorf("the bundle is no JSON: %w", err)
	}
	switch {
	case !strings.HasPrefix(b.MediaType, bundleMedia):
		return layer{}, envelope{}, fmt.Errorf("%q is the type of no bundle", b.MediaType)
	case b.Envelope == nil:
		return layer{}, envelope{}, errors.New("the bundle has no envelope")
	case len(b.Material.Entries) > maxEntries:
		return layer{}, envelope{}, fmt.Errorf("the bundle has more than %d entries of logs", maxEntries)
	case len(b.Material.Stamps.Answers) > maxStamps:
		return layer{}, envelope{}, fmt.Errorf("the bundle has more than %d timestamps", maxStamps)
	case len(b.Material.Chain.Certificates) > maxBlocks:
		return layer{}, envelope{}, fmt.Errorf("the bundle has more than %d certificates", maxBlocks)
	}
	out := layer{annotations: map[string]string{}}
	chain := b.Material.Chain.Certificates
	if b.Material.Certificate != nil {
		chain = []rawCertificate{*b.Material.Certificate}
	}
	for i, c := range chain {
		text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
		if i == 0 {
			out.annotations[certificateKey] = text
			continue
		}
		out.annotations[chainKey] += text
	}
	for _, e := range b.Material.Entries {
		if len(e.Promised.Promise) == 0 {
			if e.Proof.Checkpoint.Envelope != "" {
				out.included = append(out.included, includedEntry{int64(e.Index), e.Body, e.Proof.Hashes, e.Proof.Checkpoint.Envelope})
			}
			continue
		}
		one := bundle{Promise: e.Promised.Promise}
		one.Payload.Body, one.Payload.Time = base64.StdEncoding.EncodeToString(e.Body), int64(e.Time)
		one.Payload.Index, one.Payload.Log = int64(e.Index), hex.EncodeToString(e.LogID.ID)
		text, err := json.Marshal(one)
		if err != nil {
			return layer{}, envelope{}, err
		}
		out.logged = append(out.logged, string(text))
	}
	for _, s := range b.Material.Stamps.Answers {
		out.stamps = append(out.stamps, s.Answer)
	}
	return out, *b.Envelope, nil
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
