package webhook

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A review is not read before there is memory for it: who announces much and sends
// nothing is told to come again, and the next is judged once the memory is free.
func TestMemoryBeforeReading(t *testing.T) {
	const size = 16 << 10
	c := start(t, Options{MaxBytes: size, MaxMemory: size})
	c.Set(set(policies(t, enforced(ownerRequired))))
	body, hold := io.Pipe()
	slow := make(chan struct{})
	go func() {
		defer close(slow)
		request, _ := http.NewRequest(http.MethodPost, c.url+"/validate/fail?timeout=10s", body)
		request.Header.Set("Content-Type", "application/json")
		request.ContentLength = size
		if r, err := c.http.Do(request); err == nil {
			r.Body.Close()
		}
	}()
	for c.memory.TryAcquire(1) { // nobody has it yet
		c.memory.Release(1)
		time.Sleep(time.Millisecond)
	}
	if status, text := c.post(t, "/validate/fail?timeout=100ms", creation(t, plain)); status != http.StatusServiceUnavailable {
		t.Errorf("while there is no memory: %d %s", status, text)
	}
	hold.CloseWithError(io.ErrUnexpectedEOF)
	<-slow
	for !c.memory.TryAcquire(1) {
		time.Sleep(time.Millisecond)
	}
	c.memory.Release(1)
	if status, text := c.post(t, "/validate/fail", creation(t, plain)); status != http.StatusOK || !strings.Contains(text, `"allowed":false`) {
		t.Errorf("afterwards: %d %s", status, text)
	}
}

// A review that is larger than all the memory takes all of it, and is judged.
func TestLargerThanMemory(t *testing.T) {
	c := start(t, Options{MaxMemory: 16})
	c.Set(set(policies(t, enforced(ownerRequired))))
	if status, text := c.post(t, "/validate/fail", creation(t, plain)); status != http.StatusOK || !strings.Contains(text, `"allowed":false`) {
		t.Errorf("%d %s", status, text)
	}
}
