package background

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
)

// What may wait: so many GenerateRequests, and beyond some only small ones. Users make
// them faster than work can be done, and the store is everybody's.
const (
	maxWaiting = 5000
	manyWait   = 1000
	smallBytes = 64 << 10
	// countFor is how long a count holds.
	countFor = time.Second
)

// ErrNoRoom is work for which there is no room: a request that starts it is answered by
// its policy's failure policy, and not forgotten.
var ErrNoRoom = errors.New("too much work is waiting")

// A Backlog bounds what waits to be carried out.
type Backlog struct {
	// Count is how many GenerateRequests there are.
	Count func(ctx context.Context) (int, error)
	Now   func() time.Time
	// Counted hears of each count; it may be nil.
	Counted func(n int)

	mu   sync.Mutex
	n    int
	last time.Time
}

// Take tells whether there is room for one more. Where nobody can count there is: the
// store then answers for itself.
func (r *Backlog) Take(ctx context.Context, one *v1alpha1.GenerateRequest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.Now(); now.Sub(r.last) >= countFor {
		n, err := r.Count(ctx)
		if err != nil {
			return nil //nolint:nilerr // it says why
		}
		r.n, r.last = n, now
		if r.Counted != nil {
			r.Counted(n)
		}
	}
	bytes := failedRequestOf(one).bytes
	switch {
	case r.n >= maxWaiting:
		return fmt.Errorf("%w: %d GenerateRequests, of at most %d", ErrNoRoom, r.n, maxWaiting)
	case r.n >= manyWait && bytes > smallBytes:
		return fmt.Errorf("%w: %d GenerateRequests, and beyond %d none of more than %d bytes", ErrNoRoom, r.n, manyWait, smallBytes)
	}
	r.n++
	return nil
}
