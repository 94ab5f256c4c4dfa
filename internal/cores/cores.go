package cores

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// Each does n independent things. Each writes its own result, so that the order in
// which they are done does not show. A panic of one is the caller's.
func Each(n int, do func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	var fault atomic.Pointer[any]
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					fault.Store(&v)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
	if v := fault.Load(); v != nil {
		panic(*v)
	}
}

// A Fault is a panic that went no further.
type Fault struct {
	Value any
	In    string // the function that panicked
}

// Guard does something. A panic in it is its fault, and nothing else's.
func Guard(do func()) (fault *Fault) {
	defer func() {
		if v := recover(); v != nil {
			fault = &Fault{v, faultyFunction()}
		}
	}()
	do()
	return nil
}

// faultyFunction is the function that panicked, for the report of it: the innermost
// one that is not the runtime's, before anybody passed the panic on.
func faultyFunction() string {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(3, stack[:])])
	name, looking := "the runtime", true
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic": // who panics, or passes on a panic, is next
			looking = true
		case looking && !strings.HasPrefix(f.Function, "runtime."):
			name, looking = f.Function[strings.LastIndexByte(f.Function, '/')+1:], false
		}
		if !more {
			return name
		}
	}
}
