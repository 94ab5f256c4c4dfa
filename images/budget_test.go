package images

import (
	"errors"
	"strings"
	"testing"

	"github.com/kvap/kvap/test/testregistry"
)

// What is held at once is bounded, and given back.
func TestBudget(t *testing.T) {
	s, k := testregistry.New(t), testregistry.NewSigner(t)
	image := s.Push("app:v1")
	s.Attach(image, "att", k.Attestation(image, "t", `{"a":"`+strings.Repeat("x", 100_000)+`"}`), k.Attestation(image, "t", `{}`))
	v := verifier(t, Attestor{Key: k.PEM()})
	for _, tt := range []struct {
		bytes int64
		held  bool
	}{{1 << 20, false}, {10_000, true}} {
		r := local()
		r.Budget = NewBudget(tt.bytes)
		for range 3 {
			_, err := v.Attested(t.Context(), r, pin(t, image), "t")
			if (err != nil) != tt.held || err != nil && !errors.Is(err, ErrUnreachable) {
				t.Errorf("of %d bytes: %v", tt.bytes, err)
			}
		}
		if left := r.Budget.left.Load(); left != tt.bytes {
			t.Errorf("%d of %d bytes are left", left, tt.bytes)
		}
	}
}
