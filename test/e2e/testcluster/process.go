//go:build e2e

package testcluster

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// A Buffer may be written to and read at once: it is what a process says.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// FreeAddress is one on loopback where nobody listens.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Soon asks until the answer is yes. A machine that is busy may take long.
func Soon(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ask(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// Repeat does several things again and again, at once, until stop is called or the test
// ends. When stop returns, none is done any more.
func Repeat(t *testing.T, things ...func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, do := range things {
		all.Go(func() {
			for ctx.Err() == nil {
				do(ctx)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	t.Cleanup(stop)
	return stop
}
