package main

import (
	"os"
	"runtime/debug"
)

// letGarbageBe has less of it collected while a verb runs that makes much and keeps
// little: collecting would be a third of its work. What the user says with GOGC counts.
// There is no limit to the memory: below one that thousands of policies come near to,
// collecting never ends.
func letGarbageBe(percent int) (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}
