package compile

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// guard runs a part of the compiler. A panic in it is a diagnostic of what it was
// about, so that one policy cannot take the others with it; and so is an expression
// that grows past all bounds, of which one rule's would have been told already.
func guard(at diag.Pos, do func()) (fault *diag.Diagnostic) {
	defer func() {
		v := recover()
		if _, grown := v.(cel.TooLarge); grown {
			d := diag.Warnf(at, diag.TooLarge, "the policy would become larger than any that the API server takes; the webhook will judge it")
			fault = &d
		} else if v != nil {
			d := diag.Errorf(at, diag.CompilerFault, "the compiler failed on this policy (%v, %s); the webhook will judge it; please report this with the policy", v, faultyFunction())
			fault = &d
		}
	}()
	do()
	return nil
}

// faultyFunction is the function that panicked, for the report of it: the innermost
// one that is not the runtime's.
func faultyFunction() string {
	var stack [64]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(3, stack[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") {
			return "in " + f.Function[strings.LastIndexByte(f.Function, '/')+1:]
		}
		if !more {
			return "in the runtime"
		}
	}
}

// onEveryCore does n independent things. Each writes its own result, so that the
// order in which they are done does not show. A panic of one is the caller's.
func onEveryCore(n int, do func(i int)) {
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

// A pool has a tool for each worker.
type pool[T any] struct {
	mu   sync.Mutex
	idle []T
	make func() T
}

func newPool[T any](make func() T) *pool[T] { return &pool[T]{make: make} }

func (p *pool[T]) take() T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		tool := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return tool
	}
	return p.make()
}

func (p *pool[T]) give(tool T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, tool)
}
