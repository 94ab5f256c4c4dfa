package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvap/kvap/controller/internal/turns"
)

const (
	// smallBody is how much of each body has memory of its own, so that small reviews do not
	// wait for large ones. It is also how much of a body HTTP/2 sends before somebody reads it.
	smallBody = 64 << 10
	// maxReading is how many bodies are read at once.
	maxReading = 256
	// maxWaits is how many of them wait for a turn, and for memory where others have no room: those
	// that need neither are read.
	maxWaits = maxReading / 2
	// smallMemory holds the beginnings of all bodies that are read, and of as many that wait to
	// be judged.
	smallMemory = 2 * maxReading * smallBody
	// maxBeyond is how many addresses may have a body that takes more memory than they may.
	maxBeyond = 4
	// bodyTime is how long a body may take to come. It has two seconds more for each mebibyte of
	// its own, and a second for each two that are read meanwhile, which come the same way: an API
	// server that is short of processors sends all of them slowly.
	bodyTime = 2 * time.Second
	// crowdedTime is how long nothing may come of a body that has memory for which others wait.
	crowdedTime = time.Second
	checkTime   = bodyTime / 8
	bodyRate    = 512 << 10
	otherRate   = 2 << 20
)

// errSlow is a body that does not come.
var errSlow = errors.New("the review does not come, or too slowly")

// A memory bounds the bytes of reviews that are in it at once: those that are read, whose bytes
// are counted as they come, and those that are judged. Small reviews have their own.
type memory struct {
	metrics                  *metrics
	small, large             *turns.Shares // of bodies, by the addresses that they come from
	judgedSmall, judgedLarge *turns.Shares // of reviews that are read; they take several times as many
	most                     int64         // of judgedLarge

	bytes   atomic.Int64 // that were ever read
	waiting atomic.Int64 // for a turn
	mu      sync.Mutex
	reading map[*body]bool
}

func newMemory(size int64, metrics *metrics) *memory {
	return &memory{
		metrics: metrics,
		small:   turns.NewShares(smallMemory, maxBeyond), large: turns.NewShares(size, maxBeyond),
		judgedSmall: turns.NewShares(maxJudged*smallBody, 0), judgedLarge: turns.NewShares(size, 0), most: size,
		reading: map[*body]bool{},
	}
}

// A body is one that is read.
type body struct {
	memory       *memory
	chunks       [][]byte
	host         string
	small, large *turns.Share
	interrupt    func() // ends a read, and a wait for memory

	mu     sync.Mutex
	size   int64
	timer  *time.Timer
	due    time.Time // if nothing came, neither of it nor of others
	before int64     // what had been read of others
	heard  time.Time // when bytes came last
	waits  bool      // for memory, or a turn
	waited time.Duration
	ended  error // why it is read no longer
}

// errRead is a body that is there as a whole.
var errRead = errors.New("the review is read")

// read reads a body of at most limit bytes, until free is called. It waits for memory where
// there is none; on a connection of HTTP/2 the bodies of others go on meanwhile.
func (m *memory) read(ctx context.Context, w http.ResponseWriter, r *http.Request, limit int64, begun func([]byte) func(context.Context) error) (*body, error) {
	now, control, host := time.Now(), http.NewResponseController(w), hostOf(r)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &body{
		memory: m, host: host, small: m.small.Of(host), large: m.large.Of(host), due: now.Add(bodyTime), heard: now, before: m.bytes.Load(),
		interrupt: func() {
			cancel()                                                  // of a wait
			_ = control.SetReadDeadline(time.Now().Add(-time.Second)) // who cannot be interrupted ends with its connection
		},
	}
	if !m.join(b) {
		return nil, errBusy
	}
	b.mu.Lock()
	b.timer = time.AfterFunc(checkTime, b.check)
	b.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = b.end(errBusy) })
	err := b.fill(ctx, r.Body, limit, begun)
	stop()
	m.leave(b)
	m.metrics.waits.WithLabelValues(waitMemory).Observe(b.waited.Seconds())
	if cause := b.end(errRead); !errors.Is(cause, errRead) {
		err = cause
	}
	if err != nil {
		b.free()
		return nil, err
	}
	return b, nil
}

// fill reads to the end. A chunk counts when it is full: whoever sends nothing has no memory.
func (b *body) fill(ctx context.Context, from io.Reader, limit int64, begun func([]byte) func(context.Context) error) error {
	for next := 4 << 10; ; next = min(2*len(b.chunks[len(b.chunks)-1]), smallBody) {
		chunk := make([]byte, next)
		n, err := io.ReadFull(from, chunk)
		b.chunks = append(b.chunks, chunk[:n])
		if b.add(int64(n)); b.size > limit {
			return fmt.Errorf("%w of %d bytes", errTooLarge, limit)
		}
		if err := b.await(func() error { return b.take(ctx, int64(n)) }); err != nil {
			return err
		}
		if len(b.chunks) == 1 {
			if err := b.awaitTurn(ctx, begun(chunk[:n])); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		default:
			return fmt.Errorf("reading the review: %w", err)
		}
	}
}

func (b *body) add(n int64) {
	b.memory.bytes.Add(n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size += n
	b.heard = time.Now()
}

// take counts bytes that have come, which waits where there is no memory.
func (b *body) take(ctx context.Context, n int64) error {
	from := b.small
	if b.size > smallBody {
		from = b.large
	}
	if from.Take(ctx, n) != nil {
		return errBusy
	}
	return nil
}

// await waits for what does not come with the bytes, which is not the fault of who sends them.
func (b *body) await(something func() error) error {
	began := time.Now()
	b.wait(true, 0)
	err := something()
	b.wait(false, time.Since(began))
	return err
}

// awaitTurn waits for a turn, where there is one to wait for, and not too many wait already.
func (b *body) awaitTurn(ctx context.Context, turn func(context.Context) error) error {
	if turn == nil {
		return nil
	}
	defer b.memory.waiting.Add(-1)
	if b.memory.waiting.Add(1) > maxWaits {
		return errBusy
	}
	return b.await(func() error { return turn(ctx) })
}

func (b *body) wait(waits bool, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waits = waits
	b.waited += took
	b.heard = time.Now()
}

// check ends the reading where the body is not there in time, and looks again in a while.
func (b *body) check() {
	crowded := b.memory.large.Waiting() > 0
	b.mu.Lock()
	due, most := b.due.Add(b.waited+per(b.size, bodyRate)+per(b.memory.bytes.Load()-b.before, otherRate)), b.heard.Add(crowdedTime)
	slow := !b.waits && (time.Now().After(due) || crowded && b.size > smallBody && time.Now().After(most))
	if !slow && b.ended == nil {
		b.timer.Reset(checkTime)
	}
	b.mu.Unlock()
	if slow {
		_ = b.end(errSlow)
	}
}

// per is the time for bytes at so many in a second.
func per(bytes, rate int64) time.Duration {
	return time.Duration(bytes) * time.Second / time.Duration(rate)
}

// end ends the reading, and tells why it ended first.
func (b *body) end(why error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		if b.ended = why; !errors.Is(why, errRead) {
			b.interrupt()
		}
	}
	return b.ended
}

// state is how large it is so far; since when no bytes come, or it waits; and whether it does. Ended
// tells that it makes room already.
func (b *body) state() (size int64, since time.Time, waits, ended bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size, b.heard, b.waits, b.ended != nil
}

// free gives back what the body has taken, and forgets it.
func (b *body) free() {
	b.chunks = nil
	b.small.Free()
	b.large.Free()
}

// join has a body be read. Where too many are, one makes room for it.
func (m *memory) join(b *body) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.reading) >= maxReading {
		last := m.last()
		if last == nil {
			return false
		}
		_ = last.end(errBusy)
		delete(m.reading, last)
	}
	m.reading[b] = true
	return true
}

// last is the body that makes room, of those of the address that has most: where more than
// maxWaits wait, for memory or a turn, the largest, and of these the one that came last to wait;
// else, and where none of them waits, the one of which no bytes have come for longest.
func (m *memory) last() *body {
	of, most, waiting := map[string]int{}, 0, 0
	for b := range m.reading {
		of[b.host]++
		most = max(most, of[b.host])
		if _, _, waits, ended := b.state(); waits && !ended {
			waiting++
		}
	}
	var idle, waits *body
	var idleSince, waitsSince time.Time
	var largest int64
	for b := range m.reading {
		switch size, since, wait, ended := b.state(); {
		case ended, of[b.host] < most:
		case wait && (waits == nil || size > largest || size == largest && since.After(waitsSince)):
			waits, waitsSince, largest = b, since, size
		case !wait && (idle == nil || since.Before(idleSince)):
			idle, idleSince = b, since
		}
	}
	if waits != nil && waiting > maxWaits {
		return waits
	}
	return cmp.Or(idle, waits)
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
	began, share := time.Now(), of.Of(b.host)
	defer func() {
		if in == nil { // also where it crashes
			share.Free()
		}
	}()
	err = share.Take(ctx, size)
	m.metrics.waits.WithLabelValues(waitJudge).Observe(time.Since(began).Seconds())
	if err != nil {
		return nil, nil, errBusy
	}
	if in, err = decode(slices.Concat(b.chunks...)); err != nil {
		return nil, nil, err
	}
	return in, share.Free, nil
}
