package images

import (
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

// The annotations of a layer that is a signature, or an envelope.
const (
	signatureKey   = "dev.cosignproject.cosign/signature"
	certificateKey = "dev.sigstore.cosign/certificate"
	chainKey       = "dev.sigstore.cosign/chain"
	bundleKey      = "dev.sigstore.cosign/bundle"
)

// A payload is what a signature of an image is of.
//
//	{"critical": {"image": {"docker-manifest-digest": "sha256:…"}, …}, "optional": {"team": "a"}}
type payload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// Signed is nil where one signature of the image is the attestor's, with all of its
// annotations. Others beside it do not count, whatever they are.
func (v *Verifier) Signed(ctx context.Context, r Registry, image Image) error {
	switch v.attestor.Format {
	case Bundles:
		return v.signedByBundle(ctx, r, image)
	case Notation:
		return v.signedByNotation(ctx, r, image)
	case AnyFormat:
		layers := v.signedByLayer(ctx, r, image)
		if layers == nil {
			return nil
		}
		bundles := v.signedByBundle(ctx, r, image)
		if bundles == nil {
			return nil
		}
		return oneLine{layers, bundles}
	}
	return v.signedByLayer(ctx, r, image)
}

// signedByLayer is Signed for what is under the tag of signatures.
func (v *Verifier) signedByLayer(ctx context.Context, r Registry, image Image) error {
	layers, err := v.layers(ctx, r, image, "sig")
	if err != nil {
		return err
	}
	return anyCounts(layers, "signature of "+image.String(), func(l layer) error { return v.signature(l, image) })
}

// anyCounts is nil if one of some layers counts; else it is why none of them does.
func anyCounts(layers []layer, what string, counts func(l layer) error) error {
	var why []error
	for _, l := range layers {
		err := counts(l)
		if err == nil {
			return nil
		}
		why = append(why, err)
	}
	return fmt.Errorf("no %s is by this attestor: %w", what, joined(why))
}

// layers are those beside an image.
func (v *Verifier) layers(ctx context.Context, r Registry, image Image, suffix string) ([]layer, error) {
	at, err := repositoryNamed(cmp.Or(v.attestor.Repository, image.repository.Name()), r)
	if err != nil {
		return nil, err
	}
	layers, err := r.layers(ctx, at, v.attestor.TagPrefix, image.digest, suffix)
	what := map[string]string{"sig": "signatures", "att": "attestations"}[suffix]
	switch {
	case errors.Is(err, errAbsent), err == nil && len(layers) == 0:
		return nil, noneThere(fmt.Sprintf("there are no %s of %s in %s", what, image, at.Name()))
	case err != nil:
		return nil, fmt.Errorf("the %s of %s in %s: %w", what, image, at.Name(), err)
	}
	return layers, nil
}

// signature is nil if a layer is a signature of the image by the attestor.
func (v *Verifier) signature(l layer, image Image) error {
	data, done, err := l.read(maxPayload)
	defer done()
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(l.annotations[signatureKey])
	if err != nil || len(signature) == 0 {
		return errors.New("it has no signature in base64")
	}
	if err := v.message(l, data, signature); err != nil {
		return err
	}
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("its payload is no JSON: %w", err)
	}
	if p.Critical.Image.Digest != image.Digest() {
		return fmt.Errorf("it is of another image, %s", p.Critical.Image.Digest)
	}
	if err := v.bound(image, p.Critical.Identity.Reference); err != nil {
		return err
	}
	texts := map[string]string{}
	for key, value := range p.Optional {
		if text, ok := value.(string); ok {
			texts[key] = text
		}
	}
	return v.annotated(texts)
}

// message is nil if a signature of data is the attestor's.
func (v *Verifier) message(l layer, data, made []byte) error {
	return v.signed(l, data, made, signed{content: ofMessage(v.hash, data, made)})
}

// bound is nil where what is signed names the repository of the image, or need not.
func (v *Verifier) bound(image Image, names string) error {
	if !v.attestor.Bound {
		return nil
	}
	at, err := name.ParseReference(names)
	if err != nil || at.Context().Name() != image.repository.Name() {
		return fmt.Errorf("it is for %q, and the image is in %s (--bind-repository)", names, image.repository.Name())
	}
	return nil
}

// annotated is nil where what is signed has the attestor's annotations.
func (v *Verifier) annotated(signed map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(v.attestor.Annotations)) {
		if got, ok := signed[key]; !ok || got != v.attestor.Annotations[key] {
			return fmt.Errorf("its annotation %q is not %q", key, v.attestor.Annotations[key])
		}
	}
	return nil
}

// signed is nil if a signature of data is by the attestor's key, or by that of the certificate
// beside it, and was made while that was valid.
func (v *Verifier) signed(l layer, data, made []byte, s signed) error {
	s.by.key = v.key
	if v.key == nil {
		found, err := readCertificates(l.annotations[certificateKey])
		if err != nil {
			return fmt.Errorf("beside it: %w", err)
		}
		s.by = holder{found[0].PublicKey, found[0]}
		if err := supported(s.by.key); err != nil {
			return err
		}
	}
	if !signs(s.by.key, v.hash, data, made) {
		return errors.New("it is by another key, or of another payload")
	}
	times, err := v.times(l, made, s)
	if err != nil {
		return err
	}
	for _, at := range times {
		if err := v.valid(s.by.certificate, l.annotations[chainKey], at); err != nil {
			return err
		}
	}
	return nil
}

// times are when the signature was made, as others than the signer say: a log, and a timestamp
// authority. All of them count. It is now where nobody says when.
func (v *Verifier) times(l layer, made []byte, s signed) ([]time.Time, error) {
	var out []time.Time
	var silent *knownLog // that has it, and says no time
	if !v.attestor.IgnoreLog {
		entries, err := l.entries()
		if err != nil {
			return nil, err
		}
		log, at, err := v.loggedBy(s, entries)
		switch {
		case err != nil:
			return nil, err
		case at.IsZero():
			silent = &log
		default:
			out = append(out, at)
		}
	}
	if v.attestor.Stamps != "" || out == nil {
		seen := made
		if s.whole != nil {
			seen = s.whole
		}
		answers, err := l.stampsOf()
		var at time.Time
		if err == nil {
			at, err = stamped(v.stampers, answers, seen)
		}
		switch {
		case err == nil:
			out = append(out, at)
		case v.attestor.Stamps != "":
			return nil, err
		case silent != nil && s.by.certificate != nil:
			return nil, fmt.Errorf("its log says no time, and nobody else does: %w", err)
		}
	}
	if out == nil {
		out = []time.Time{v.now()}
	}
	if silent != nil {
		if err := silent.counts(out[0]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// valid is nil if the certificate beside a signature is issued under the attestor's roots, and
// was valid at a time, as all between were.
func (v *Verifier) valid(certificate *x509.Certificate, chain string, at time.Time) error {
	if certificate == nil {
		return v.within(at)
	}
	if v.identity != nil {
		if err := v.issued(certificate, at); err != nil {
			return err
		}
		return v.identity.is(certificate)
	}
	over := v.chain
	over.between = over.between.Clone()
	if chain != "" {
		beside, err := readCertificates(chain)
		if err != nil {
			return fmt.Errorf("the chain beside it: %w", err)
		}
		for _, c := range beside {
			over.between.AddCert(c)
		}
	}
	chains, err := over.issued(certificate, at)
	if err == nil && v.attestor.LoggedCertificates {
		err = v.known(chains)
	}
	if err != nil {
		return fmt.Errorf("the certificate beside it: %w", err)
	}
	return nil
}

// joined is what is wrong with signatures: each reason once, and not more than a few.
func joined(why []error) error {
	const most = 3
	var out []error
	seen := map[string]bool{}
	for _, err := range why {
		if !seen[err.Error()] && len(out) < most {
			out = append(out, err)
		}
		seen[err.Error()] = true
	}
	if more := len(seen) - len(out); more > 0 {
		out = append(out, fmt.Errorf("and %d other reasons", more))
	}
	return oneLine(out)
}

// oneLine joins errors by semicolons.
type oneLine []error

// Error implements error.
func (l oneLine) Error() string {
	texts := make([]string, len(l))
	for i, err := range l {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// with has one error more, unless it is nil.
func (l oneLine) with(err error) oneLine {
	if err == nil {
		return l
	}
	return append(l, err)
}

// Unwrap has the errors.
func (l oneLine) Unwrap() []error { return l }

// sum is the hash of data in SHA-256.
func sum(data []byte) []byte {
	h := crypto.SHA256.New()
	h.Write(data)
	return h.Sum(nil)
}
