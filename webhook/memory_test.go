package webhook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Where a pool is empty one goes beyond it to its end, and then others do.
func TestPool(t *testing.T) {
	p := &pool{left: 10}
	var a, b share
	a.of, b.of = p, p
	ended, end := context.WithCancel(t.Context())
	end()
	for _, s := range []*share{&a, &b} {
		if err := s.take(ended, 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.take(ended, 5); err != nil {
		t.Errorf("the first beyond: %v", err)
	}
	if err := b.take(ended, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a second beyond: %v", err)
	}
	if err := a.take(ended, 100); err != nil {
		t.Errorf("the first, once more: %v", err)
	}
	waited := make(chan error)
	go func() { waited <- b.take(t.Context(), 7) }()
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		waiting = len(p.waiting)
		p.mu.Unlock()
	}
	a.free()
	if err := <-waited; err != nil {
		t.Errorf("after the first: %v", err)
	}
	b.free()
	if p.left != 10 || p.beyond != nil || len(p.waiting) != 0 {
		t.Errorf("%d of 10 are left, beyond is %v, waiting %d", p.left, p.beyond, len(p.waiting))
	}
}

// A review that is larger than all the memory takes all of it, and is judged.
func TestLargerThanMemory(t *testing.T) {
	c := start(t, Options{MaxMemory: 16})
	c.Set(set(policies(t, enforced(ownerRequired))))
	for range 2 {
		if status, text := c.post(t, "/validate/fail", large(t, 200<<10)); status != http.StatusOK || !strings.Contains(text, `"allowed":false`) {
			t.Errorf("%d %s", status, text)
		}
	}
}

// What is read and judged gives its memory back, whatever comes of it.
func TestMemoryIsGivenBack(t *testing.T) {
	c := start(t, Options{MaxBytes: 1 << 20})
	c.Set(set(policies(t, enforced(ownerRequired))))
	body := large(t, 500<<10)
	for _, text := range []string{body, body[:300<<10], strings.Repeat("x", 2<<20), creation(t, plain), ""} {
		c.post(t, "/validate/fail", text)
	}
	m := c.memory
	if m.small.left != smallMemory || m.large.left != m.most || len(m.reading) != 0 || !m.judgedSmall.TryAcquire(maxJudged*smallBody) || !m.judgedLarge.TryAcquire(m.most) {
		t.Errorf("left are %d of the small and %d of the large, %d are read", m.small.left, m.large.left, len(m.reading))
	}
}

// Bodies that all wait, as for memory that others have, leave room to be read for one more: the
// last of them goes. One that is idle goes before.
func TestRoomAmongThoseThatWait(t *testing.T) {
	m := newMemory(1, newMetrics(nil))
	began := time.Now()
	one := func(after time.Duration, waits bool) *body {
		return &body{memory: m, heard: began.Add(after), waits: waits, interrupt: func() {}}
	}
	first, last := one(0, true), one(time.Hour, true)
	for i := range maxReading - 2 {
		m.reading[one(time.Duration(i+1)*time.Second, true)] = true
	}
	m.reading[first], m.reading[last] = true, true
	idle := one(2*time.Hour, false)
	if !m.join(idle) || !errors.Is(last.ended, errBusy) || first.ended != nil || len(m.reading) != maxReading {
		t.Errorf("the last ended with %v, the first with %v, %d are read", last.ended, first.ended, len(m.reading))
	}
	if !m.join(one(0, true)) || !errors.Is(idle.ended, errBusy) {
		t.Errorf("the idle one ended with %v", idle.ended)
	}
}
