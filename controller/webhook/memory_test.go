package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

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
	if m.small.Left() != smallMemory || m.large.Left() != m.most || len(m.reading) != 0 || m.judgedSmall.Left() != maxJudged*smallBody || m.judgedLarge.Left() != m.most {
		t.Errorf("left are %d of the small and %d of the large, %d are read", m.small.Left(), m.large.Left(), len(m.reading))
	}
}

// Bodies that wait, as for memory that others have, leave half of the room to those that are read:
// where more wait, the largest of them goes for one more, else one that is idle.
func TestRoomAmongThoseThatWait(t *testing.T) {
	m := newMemory(1, newMetrics(nil))
	began := time.Now()
	one := func(after time.Duration, waits bool) *body {
		return &body{memory: m, heard: began.Add(after), waits: waits, interrupt: func() {}}
	}
	first, last := one(0, true), one(time.Hour, true)
	last.size = 1 // of those that are largest
	m.reading[one(2*time.Hour, true)] = true
	for i := range maxReading - 3 {
		m.reading[one(time.Duration(i+1)*time.Second, true)] = true
	}
	m.reading[first], m.reading[last] = true, true
	idle := one(-time.Hour, false)
	if !m.join(idle) || !errors.Is(last.ended, errBusy) || first.ended != nil || len(m.reading) != maxReading {
		t.Errorf("the last ended with %v, the first with %v, %d are read", last.ended, first.ended, len(m.reading))
	}
	for waiting := maxReading - 1; waiting > maxWaits; waiting-- {
		if !m.join(one(0, false)) || idle.ended != nil {
			t.Fatalf("one that is read ended with %v, while %d wait", idle.ended, waiting)
		}
	}
	if !m.join(one(0, true)) || !errors.Is(idle.ended, errBusy) || first.ended != nil {
		t.Errorf("the idle one ended with %v, the first that waits with %v", idle.ended, first.ended)
	}
	m.reading[&body{memory: m, host: "other", heard: began.Add(-time.Hour), interrupt: func() { t.Error("the only one of its address goes") }}] = true
	if !m.join(one(0, true)) {
		t.Error("no room among those of an address that has many")
	}
}

// Where a review crashes what decodes it, its memory is given back too.
func TestMemoryOfACrash(t *testing.T) {
	m := newMemory(1<<20, newMetrics(nil))
	b := &body{memory: m, host: "host", small: m.small.Of("host"), large: m.large.Of("host"), chunks: [][]byte{[]byte("{}")}, size: 2}
	m.metrics.waits = nil // which crashes it
	func() {
		defer func() {
			if recover() == nil {
				t.Error("nothing crashes")
			}
		}()
		_, _, _ = m.decode(t.Context(), b)
	}()
	if left := m.judgedSmall.Left(); left != maxJudged*smallBody {
		t.Errorf("%d bytes are left of %d", left, maxJudged*smallBody)
	}
}

// A body that makes room while it waits for its turn waits no longer.
func TestMakingRoomEndsTheWaitForATurn(t *testing.T) {
	m := newMemory(1<<20, newMetrics(nil))
	waits := make(chan struct{})
	answer := make(chan error, 1)
	go func() {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		_, err := m.read(t.Context(), httptest.NewRecorder(), r, 1<<10, func([]byte) func(context.Context) error {
			return func(ctx context.Context) error {
				close(waits)
				<-ctx.Done()
				return ctx.Err()
			}
		})
		answer <- err
	}()
	<-waits
	m.mu.Lock()
	for b := range m.reading {
		_ = b.end(errBusy)
	}
	m.mu.Unlock()
	select {
	case err := <-answer:
		if !errors.Is(err, errBusy) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits on")
	}
}
