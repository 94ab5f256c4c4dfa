package proven

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/interp"
)

// Recorded is an interp.Registry that answers from a folder, see images.Recorded.
type Recorded struct {
	folder *images.Recorded
	trust  *images.Trust
}

// Open is the Recorded of a folder. Whom keyless signatures are trusted by is trust, or if that is
// nil the public Sigstore as it was when this was built.
func Open(dir string, trust *images.Trust) (*Recorded, error) {
	folder, err := images.OpenRecorded(dir)
	if err == nil && trust == nil {
		trust, err = images.PublicTrust()
	}
	return &Recorded{folder, trust}, err
}

// registry allows any host: nothing is connected to.
func (r *Recorded) registry() images.Registry {
	return images.Registry{Recorded: r.folder, Insecure: true, Local: true}
}

// Pinned implements interp.Registry.
func (r *Recorded) Pinned(ctx context.Context, reference string, _ interp.Access) (string, error) {
	image, err := r.registry().Resolve(ctx, reference)
	if err != nil {
		return "", told(err)
	}
	return image.String(), nil
}

// Signed implements interp.Registry.
func (r *Recorded) Signed(ctx context.Context, image string, by interp.Attestor, _ interp.Access) error {
	pinned, v, err := r.prover(image, by)
	if err != nil {
		return err
	}
	return told(v.Signed(ctx, r.registry(), pinned))
}

// Attested implements interp.Registry.
func (r *Recorded) Attested(ctx context.Context, image, kind string, by interp.Attestor, _ interp.Access) ([]map[string]any, error) {
	pinned, v, err := r.prover(image, by)
	if err != nil {
		return nil, err
	}
	statements, err := v.Attested(ctx, r.registry(), pinned, kind)
	var out []map[string]any
	for _, s := range statements {
		out = append(out, s.Content)
	}
	return out, told(err)
}

// Image is what the folder knows of an image.
func (r *Recorded) Image(ctx context.Context, reference string) (map[string]any, error) {
	return r.registry().Describe(ctx, reference)
}

func (r *Recorded) prover(image string, by interp.Attestor) (images.Image, *images.Verifier, error) {
	pinned, err := images.Pinned(image)
	if err != nil {
		return pinned, nil, err
	}
	v, err := Verifier(by, r.trust, false, time.Now)
	return pinned, v, err
}

// told is an error as the interpreter knows it.
func told(err error) error {
	if errors.Is(err, images.ErrUnreachable) {
		return fmt.Errorf("%w: %w", interp.ErrUnreachable, err)
	}
	return err
}
