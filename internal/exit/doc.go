// Package exit says how a run of the command line ends.
//
// In: the error that ended it, or none where everything has been said. Out: an error
// that carries one of the exit codes.
//
// What must hold: the codes are an interface, see docs/adr/0012-what-is-an-api.md; the output
// format never changes them. An error without a code is one of usage.
//
// Start at Error (exit.go).
package exit
