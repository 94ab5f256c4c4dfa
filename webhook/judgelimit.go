package webhook

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// errBusy is a request that got no turn in its time.
var errBusy = errors.New("too many requests are being judged")

// A judgeLimit bounds how many requests are judged at once, and how many of them are about
// one kind and come in at one path. A policy that waits for something slow keeps only the
// requests waiting that it is about.
type judgeLimit struct {
	all   *semaphore.Weighted
	share int64 // of one kind and path

	mu    sync.Mutex
	kinds map[string]*kindLimit
}

// A kindLimit exists while a request of its kind and path waits or is judged.
type kindLimit struct {
	*semaphore.Weighted
	users int
}

func newJudgeLimit(n int) *judgeLimit {
	return &judgeLimit{all: semaphore.NewWeighted(int64(n)), share: int64(max(1, n/2)), kinds: map[string]*kindLimit{}}
}

// take waits for a turn, which ends with a call of done.
func (t *judgeLimit) take(ctx context.Context, name string) (done func(), err error) {
	kind := t.join(name)
	if kind.Acquire(ctx, 1) != nil {
		t.leave(name)
		return nil, errBusy
	}
	if t.all.Acquire(ctx, 1) != nil {
		kind.Release(1)
		t.leave(name)
		return nil, errBusy
	}
	return func() {
		t.all.Release(1)
		kind.Release(1)
		t.leave(name)
	}, nil
}

func (t *judgeLimit) join(name string) *kindLimit {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[name]
	if k == nil {
		k = &kindLimit{Weighted: semaphore.NewWeighted(t.share)}
		t.kinds[name] = k
	}
	k.users++
	return k
}

func (t *judgeLimit) leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k := t.kinds[name]; k.users > 1 {
		k.users--
	} else {
		delete(t.kinds, name)
	}
}
