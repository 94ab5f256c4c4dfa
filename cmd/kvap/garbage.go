package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

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
