// Package planning gathers what a migration plan is made of, and makes it.
//
// In: Options: policies of files or of a cluster, the objects that are put before them,
// and what rules look up. Out: the report's Plan, diagnostics, and what could not be read.
//
// What must hold: nothing is written. Policies of kvap.dev have left Kyverno, so those of a
// cluster are none of the plan's. Objects are judged as if they were created now; what may
// not be read is told, and the plan is incomplete.
//
// What a policy becomes, and in which order policies go, package migrate says.
//
// Start at New (planning.go).
package planning
