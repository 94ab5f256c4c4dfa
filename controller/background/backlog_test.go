package background

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
)

// Work is refused where too much is waiting, large work before that, and there is room
// again when some of it is done.
func TestRoom(t *testing.T) {
	now, waiting, counts := time.Unix(1e9, 0), 0, 0
	r := &Backlog{Now: func() time.Time { return now }, Count: func(context.Context) (int, error) {
		counts++
		return waiting, nil
	}}
	small := &v1alpha1.GenerateRequest{}
	large := &v1alpha1.GenerateRequest{Spec: v1alpha1.GenerateRequestSpec{Request: &v1alpha1.CapturedRequest{OldObject: &runtime.RawExtension{Raw: []byte(strings.Repeat("x", 100<<10))}}}}
	for _, tt := range []struct {
		waiting      int
		small, large bool
	}{{0, true, true}, {999, true, false}, {1000, true, false}, {4999, true, false}, {5000, false, false}, {10, true, true}} {
		waiting, now = tt.waiting, now.Add(time.Second)
		if err := r.Take(t.Context(), small); (err == nil) != tt.small || err != nil && !errors.Is(err, ErrNoRoom) {
			t.Errorf("%d wait: small %v", tt.waiting, err)
		}
		if err := r.Take(t.Context(), large); (err == nil) != tt.large {
			t.Errorf("%d wait: large %v", tt.waiting, err)
		}
	}
	if counts != 6 {
		t.Errorf("%d counts", counts)
	}
	now, waiting = now.Add(time.Second), 4000
	took := 0
	for r.Take(t.Context(), small) == nil {
		took++
	}
	if took != 1000 {
		t.Errorf("between counts there was room for %d", took)
	}
}
