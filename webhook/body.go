package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// smallBody is how much of each body has memory of its own, so that small reviews do not
	// wait for large ones. It is also how much of a body HTTP/2 sends before somebody reads it.
	smallBody = 64 << 10
	// maxReading is how many bodies are read at once.
	maxReading = 256
	// smallMemory holds the beginnings of all bodies that are read, and of as many that wait to
	// be judged.
	smallMemory = 2 * maxReading * smallBody
	// bodyTime is how long a body may take to come, and as much again for each two mebibytes.
	bodyTime = 2 * time.Second
)

// errSlow is a body that does not come.
var errSlow = errors.New("the review does not come, or too slowly")

// A memory bounds the bytes of reviews that are in it at once: those that are read, whose bytes
// are counted as they come, and those that are judged. Small reviews have their own.
type memory struct {
	small, large             *pool               // of bodies
	judgedSmall, judgedLarge *semaphore.Weighted // of reviews that are read; they take several times as many
	most                     int64               // of judgedLarge

	mu      sync.Mutex
	reading map[*body]bool
}

func newMemory(size int64) *memory {
	return &memory{
		small: &pool{left: smallMemory}, large: &pool{left: size},
		judgedSmall: semaphore.NewWeighted(maxJudged * smallBody), judgedLarge: semaphore.NewWeighted(size), most: size,
		reading: map[*body]bool{},
	}
}

// A body is one that is read.
type body struct {
	memory       *memory
	chunks       [][]byte
	size         int64
	small, large share
	deadlines    interface{ SetReadDeadline(time.Time) error }
	due          time.Time

	mu      sync.Mutex
	heard   time.Time // when bytes came, or memory for more
	waits   bool      // for memory
	stopped bool      // to make room for another one
}

// read reads a body of at most limit bytes, until free is called. It waits for memory where
// there is none; on a connection of HTTP/2 the bodies of others go on meanwhile.
func (m *memory) read(ctx context.Context, w http.ResponseWriter, r *http.Request, limit int64) (*body, error) {
	now := time.Now()
	b := &body{memory: m, small: share{of: m.small}, large: share{of: m.large}, deadlines: http.NewResponseController(w), due: now.Add(bodyTime), heard: now}
	if !m.join(b) {
		return nil, errBusy
	}
	defer m.leave(b)
	err := b.fill(ctx, r.Body, limit)
	if err != nil {
		b.free()
		return nil, err
	}
	return b, b.deadlines.SetReadDeadline(time.Time{}) // judging takes its own time
}

// fill reads to the end. The first chunk is small, and has no memory before it is full: whoever
// sends nothing has none.
func (b *body) fill(ctx context.Context, from io.Reader, limit int64) error {
	for next := 4 << 10; ; next = min(2*len(b.chunks[len(b.chunks)-1]), smallBody) {
		chunk := make([]byte, next)
		if err := b.await(ctx); err != nil {
			return err
		}
		n, err := io.ReadFull(from, chunk)
		b.chunks = append(b.chunks, chunk[:n])
		b.size += int64(n)
		if b.size > limit {
			return fmt.Errorf("%w of %d bytes", errTooLarge, limit)
		}
		if err := b.take(ctx, int64(n)); err != nil {
			return err
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case b.isStopped():
			return errBusy
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errSlow
		default:
			return fmt.Errorf("reading the review: %w", err)
		}
	}
}

// await lets bytes come until they are due.
func (b *body) await(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return errBusy
	}
	due := b.due.Add(time.Duration(b.size) * bodyTime / (2 << 20))
	if end, ok := ctx.Deadline(); ok && end.Before(due) {
		due = end
	}
	b.heard = time.Now()
	return b.deadlines.SetReadDeadline(due)
}

// take counts bytes that have come, which waits where there is no memory.
func (b *body) take(ctx context.Context, n int64) error {
	from := &b.small
	if b.size > smallBody {
		from = &b.large
	}
	began := time.Now()
	b.setWaits(true)
	err := from.take(ctx, n)
	b.setWaits(false)
	b.due = b.due.Add(time.Since(began)) // which is not its fault
	if err != nil {
		return errBusy
	}
	return nil
}

func (b *body) setWaits(waits bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waits = waits
}

func (b *body) isStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}

// stop ends the reading.
func (b *body) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	_ = b.deadlines.SetReadDeadline(time.Now().Add(-time.Second)) // or its end is near anyway
}

// idle is since when no bytes come; ok is false for one that waits for memory.
func (b *body) idle() (since time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard, !b.waits && !b.stopped
}

// free gives back what the body has taken, and forgets it.
func (b *body) free() {
	b.chunks = nil
	b.small.free()
	b.large.free()
}

// join has a body be read. Where too many are, the one of which no bytes have come for longest
// makes room for it.
func (m *memory) join(b *body) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.reading) >= maxReading {
		var last *body
		var since time.Time
		for other := range m.reading {
			if heard, ok := other.idle(); ok && (last == nil || heard.Before(since)) {
				last, since = other, heard
			}
		}
		if last == nil {
			return false
		}
		last.stop()
		delete(m.reading, last)
	}
	m.reading[b] = true
	return true
}

func (m *memory) leave(b *body) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reading, b)
}

// decode makes a review of a body, which goes, when there is memory for it; until done.
func (m *memory) decode(ctx context.Context, b *body) (in *review, done func(), err error) {
	defer b.free()
	of, size := m.judgedSmall, b.size
	if size > smallBody {
		of, size = m.judgedLarge, min(size, m.most)
	}
	if of.Acquire(ctx, size) != nil {
		return nil, nil, errBusy
	}
	done = func() { of.Release(size) }
	if in, err = decode(slices.Concat(b.chunks...)); err != nil {
		done()
		return nil, nil, err
	}
	return in, done, nil
}

// A pool is memory that bodies take of as their bytes come. Where nothing is left, one of them
// takes more all the same, so that always one comes to its end and gives back what it has.
type pool struct {
	mu      sync.Mutex
	left    int64
	beyond  *share // who takes more than there is
	waiting []*waiter
}

// A share is what one body has of a pool.
type share struct {
	of    *pool
	taken int64
}

type waiter struct {
	share *share
	bytes int64
	given chan struct{}
}

// take waits for memory, in the order in which bodies ask.
func (s *share) take(ctx context.Context, bytes int64) error {
	p := s.of
	p.mu.Lock()
	if (len(p.waiting) == 0 || p.beyond == s) && p.give(s, bytes) {
		p.mu.Unlock()
		return nil
	}
	w := &waiter{s, bytes, make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiting = slices.DeleteFunc(p.waiting, func(o *waiter) bool { return o == w })
		return ctx.Err()
	}
}

func (p *pool) give(s *share, bytes int64) bool {
	if bytes > p.left {
		if p.beyond != nil && p.beyond != s {
			return false
		}
		p.beyond = s
	}
	p.left -= bytes
	s.taken += bytes
	return true
}

// free gives back all that was taken.
func (s *share) free() {
	p := s.of
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left += s.taken
	s.taken = 0
	if p.beyond == s {
		p.beyond = nil
	}
	for len(p.waiting) > 0 && p.give(p.waiting[0].share, p.waiting[0].bytes) {
		close(p.waiting[0].given)
		p.waiting = p.waiting[1:]
	}
}
