// Package checking looks at the admission policies of sources or of a cluster, for the
// verb check.
//
// In: Sources, choices for each release, and a Connection where a cluster is asked for its
// policies and the types of its custom kinds. Out: what package check finds, as the
// report's values.
//
// What must hold: an object is checked for each release asked for. Of Kyverno-style
// policies of a cluster those are left out of which native objects are there: these are
// what counts. What cannot be read is told, and nothing is written.
//
// Start at Run (run.go).
package checking
