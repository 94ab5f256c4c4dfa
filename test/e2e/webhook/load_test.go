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
	shared.beside(t, 4*time.Second, func() { // of the thirty that a large one may take
		var wg sync.WaitGroup
		for range 24 {
			wg.Go(func() {
				began := time.Now()
				_, err := shared.try(t.Context(), t, body)
				if err == nil || !strings.Contains(err.Error(), "denied the request") {
					t.Errorf("a large one after %v: %.300v", time.Since(began), err)
				}
			})
		}
		wg.Wait()
	})
}
