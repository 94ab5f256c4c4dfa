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

// garbageFor is how much garbage is let be beside what is kept, in percent, while
// sources are converted. Of thousands of policies so much is kept that twice as much
// again would be gigabytes, and to collect it more often takes hardly any time.
func garbageFor(sources []source) (percent int) {
	const thousands = 512 << 10 // bytes of policies
	size := 0
	for _, s := range sources {
		size += len(s.data)
	}
	if size > thousands {
		return 100
	}
	return 200
}
