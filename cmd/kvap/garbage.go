package main

import (
	"math"
	"os"
	"runtime/debug"
)

// letGarbageBe has less of it collected while a verb runs that makes much and keeps
// little: collecting would be a third of its work. Where a gigabyte is in use, there is
// no waiting any more. What the user says with GOGC or GOMEMLIMIT counts.
func letGarbageBe() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	percent := debug.SetGCPercent(300)
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		debug.SetMemoryLimit(1 << 30)
	}
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
