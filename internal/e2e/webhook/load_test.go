//go:build e2e

package webhook

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Many large objects at once are all judged, and a small one beside them does not wait for them.
func TestLargeObjectsAtOnce(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.start(t, "")
	shared.Apply(t, strings.Replace(guarded, "  background: false\n", "  background: false\n  webhookTimeoutSeconds: 30\n", 1)) // other tests run beside this one
	shared.denied(t, unowned)
	body := strings.Replace(unowned, "metadata:", "data: {x: "+strings.Repeat("x", 1_000_000)+"}\nmetadata:", 1)
	judged := func(text, what string) {
		began := time.Now()
		_, err := shared.try(t.Context(), t, text)
		if err == nil || !strings.Contains(err.Error(), "denied the request") {
			t.Errorf("%s after %v: %.300v", what, time.Since(began), err)
		}
	}
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() { judged(body, "a large one") })
	}
	ended := make(chan struct{})
	go func() {
		wg.Wait()
		close(ended)
	}()
	var slowest time.Duration
	for beside := true; beside; {
		began := time.Now()
		judged(unowned, "the small one")
		slowest = max(slowest, time.Since(began))
		select {
		case <-ended:
			beside = false
		case <-time.After(50 * time.Millisecond):
		}
	}
	if slowest > 4*time.Second { // of the thirty that a large one may take
		t.Errorf("the small one took up to %v", slowest)
	}
	t.Logf("the small one took %v at most", slowest)
}
