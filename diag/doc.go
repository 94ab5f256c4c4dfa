// Package diag says what is wrong, where, and what to do about it.
//
// In: a place, a code and a message, from every other package. Out: a List in a
// stable order, as text with the source line and a caret, or as JSON by its struct
// tags; and what a code means, for kvap explain.
//
// What must hold: a diagnostic has a place, a code whose value never changes, and
// a message that names the next step. The comments in codes.go are the only
// description of a code: explain.go and docs/codes.md are generated from them (go
// generate ./diag), and tests fail when they are stale or when an example does not
// yield its code.
//
// It reads no files, knows no terminal and imports nothing of ours.
//
// Start at diag.go, then codes.go; text.go draws the caret.
package diag

//go:generate go run gen.go
