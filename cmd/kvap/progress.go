package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/kvap/kvap/diag"
)

// patience is how long work may take before a terminal is told how far it is.
const patience = 2 * time.Second

// A progress is one line on a terminal that says how far the work is. Nobody else
// sees it, nor those who wait no longer than patience.
type progress struct {
	mu    sync.Mutex
	w     io.Writer // nil where nobody looks
	begun time.Time
	shown time.Time
	width int
}

func newProgress(w io.Writer, quiet bool) *progress {
	if quiet || !isTerminal(w) {
		return &progress{}
	}
	return &progress{w: w, begun: time.Now()}
}

// show replaces the line, but not more often than one can read.
func (p *progress) show(format string, args ...any) {
	if p.w == nil || time.Since(p.begun) < patience {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = time.Now()
	line := diag.Inert(fmt.Sprintf(format, args...))
	fmt.Fprintf(p.w, "\r%-*s", p.width, line)
	p.width = len(line)
}

// during shows for how long work goes on that does not say how far it is.
func (p *progress) during(what string, work func()) {
	if p.w == nil {
		work()
		return
	}
	begun, done := time.Now(), make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.show("%s: %d s", what, int(time.Since(begun).Seconds()))
			}
		}
	})
	defer ticking.Wait()
	defer close(done)
	work()
}

func (p *progress) clear() {
	if p.w != nil && p.width > 0 {
		fmt.Fprintf(p.w, "\r%*s\r", p.width, "")
		p.width = 0
	}
}

// letGarbageBe has less of it collected while a verb runs that makes much and keeps
// little: collecting would be a third of its work. Nothing is collected before there
// are some multiples of ballast, memory that is never touched and so takes none. What
// the user says with GOGC counts.
// There is no limit to the memory: below one that thousands of policies come near to,
// collecting never ends.
func letGarbageBe(percent, ballast int) (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	unused := make([]byte, ballast)
	return func() {
		runtime.KeepAlive(unused)
		debug.SetGCPercent(before)
	}
}
