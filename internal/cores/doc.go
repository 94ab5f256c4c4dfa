// Package cores does things that do not depend on each other, on every core, and keeps
// what goes wrong in one of them from the others.
//
// In comes what to do; nothing goes out but that it is done. Each waits until all is
// done and leaves no goroutine behind. A panic is the caller's, in whatever goroutine it
// happened, or stays where Guard puts its boundary.
//
// It knows nothing of what is done, and does not bound how long that takes.
//
// Start at Each.
package cores
