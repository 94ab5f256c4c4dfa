// Package live reads a cluster for package status, and watches it for changes.
//
// In: a Connection, and whose exceptions count. Out: a Reader, of which Status is the
// health of the policies that are asked for.
//
// What must hold: nothing is written. What may not be read is left out, and said; any
// other error ends the reading. Of the objects that bindings refer to only metadata is
// read. What the notes are about is a hint: who may not read that is told nothing.
//
// Start at Read (read.go).
package live
