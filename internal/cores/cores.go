package cores

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// Each does n independent things. Each writes its own result, so that the order in
// which they are done does not show. A panic of one is the caller's.
func Each(n int, do func(i int)) { NewCrew().Each(n, do) }

// A Crew is as many workers as there are cores, for things that consist of things. Who
// makes it is one of them.
type Crew struct{ working chan struct{} } // has an entry for each that does not wait

// NewCrew is a crew of which only the caller works yet.
func NewCrew() *Crew {
	c := &Crew{make(chan struct{}, runtime.GOMAXPROCS(0))}
	c.working <- struct{}{}
	return c
}

// Each is like the function, for one of the crew: things that are done may call it again.
func (c *Crew) Each(n int, do func(i int)) {
	j := &job{crew: c, n: n, do: do}
	j.work()
	<-c.working // others may work meanwhile
	j.helpers.Wait()
	c.working <- struct{}{}
	if v := j.fault.Load(); v != nil {
		panic(*v)
	}
}

// A job is n things to do.
type job struct {
	crew    *Crew
	n       int
	do      func(i int)
	next    atomic.Int64
	helpers sync.WaitGroup
	fault   atomic.Pointer[any]
}

func (j *job) work() {
	defer func() {
		if v := recover(); v != nil {
			j.fault.Store(&v)
		}
	}()
	for i := int(j.next.Add(1)) - 1; i < j.n; i = int(j.next.Add(1)) - 1 {
		j.seekHelp()
		j.do(i)
	}
}

// seekHelp has another worker take part, where one is idle and something is left to do.
func (j *job) seekHelp() {
	if int(j.next.Load()) >= j.n {
		return
	}
	select {
	case j.crew.working <- struct{}{}:
		j.helpers.Go(func() {
			defer func() { <-j.crew.working }()
			j.work()
		})
	default:
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
