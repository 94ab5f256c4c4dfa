package cores_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kvap/kvap/internal/cores"
)

// Everything is done once, each by itself.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		done := make([]int, n)
		cores.Each(n, func(i int) { done[i]++ })
		for i, times := range done {
			if times != 1 {
				t.Errorf("%d of %d was done %d times", i, n, times)
			}
		}
	}
}

// Things that consist of things are done once, too, and no more at a time than there are
// cores.
func TestCrew(t *testing.T) {
	crew := cores.NewCrew()
	var done, now, most atomic.Int64
	crew.Each(20, func(int) {
		crew.Each(10, func(int) {
			crew.Each(5, func(int) {
				at := now.Add(1)
				for m := most.Load(); at > m && !most.CompareAndSwap(m, at); m = most.Load() {
				}
				runtime.Gosched()
				done.Add(1)
				now.Add(-1)
			})
		})
	})
	if cores := int64(runtime.GOMAXPROCS(0)); done.Load() != 1000 || most.Load() > cores {
		t.Errorf("%d were done, %d at a time on %d cores", done.Load(), most.Load(), cores)
	}
}

// Who has nothing left to do, or waits, helps with what others have begun.
func TestCrewHelps(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("one core has nobody to help")
	}
	crew := cores.NewCrew()
	var now atomic.Int64
	var together atomic.Bool
	crew.Each(2, func(i int) {
		if i == 0 {
			return // and is free
		}
		crew.Each(200, func(int) {
			if now.Add(1) > 1 {
				together.Store(true)
			}
			time.Sleep(100 * time.Microsecond)
			now.Add(-1)
		})
	})
	if !together.Load() {
		t.Error("nobody has helped")
	}
}

// A panic is the caller's, who can catch it, and not the end of the program.
func TestPanicIsTheCallers(t *testing.T) {
	var others atomic.Int64
	fault := cores.Guard(func() {
		cores.Each(100, func(i int) {
			if i == 3 {
				panic("oops")
			}
			others.Add(1)
		})
	})
	if fault == nil || fault.Value != "oops" || others.Load() < 3 {
		t.Errorf("%+v, %d others", fault, others.Load())
	}
}

// A fault says where it happened.
func TestGuard(t *testing.T) {
	var none *struct{ line int }
	for name, do := range map[string]func(){
		"a nil pointer": func() { none.line++ },
		"a value":       func() { panic("oops") },
		"passed on":     func() { passingOn(func() { panic("oops") }) },
	} {
		if fault := cores.Guard(do); fault == nil || fault.Value == nil || !strings.HasPrefix(fault.In, "cores_test.TestGuard") {
			t.Errorf("%s: %+v", name, fault)
		}
	}
	if fault := cores.Guard(func() {}); fault != nil {
		t.Errorf("nothing panicked: %+v", fault)
	}
}

// passingOn lets a panic pass that it has looked at.
func passingOn(do func()) {
	defer func() {
		if v := recover(); v != nil {
			panic(v)
		}
	}()
	do()
}

// No two have the same tool at once, and none is made without need.
func TestPool(t *testing.T) {
	var made atomic.Int64
	pool := cores.NewPool(func() *atomic.Int64 { made.Add(1); return new(atomic.Int64) })
	cores.Each(200, func(int) {
		tool := pool.Take()
		if tool.Add(1) != 1 {
			t.Error("a tool is had twice")
		}
		tool.Add(-1)
		pool.Give(tool)
	})
	if most := int64(runtime.GOMAXPROCS(0)); made.Load() > most {
		t.Errorf("%d tools were made for %d cores", made.Load(), most)
	}
}
