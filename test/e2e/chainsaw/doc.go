// Package chainsaw runs tests that are written for chainsaw, on a cluster: what a test
// applies must be taken or refused as it says, what it asserts must come true, and its
// scripts must end as it wants. Like the tests that use it, it carries the build tag e2e.
//
// In: the folder of a test, and a Cluster with what is particular to it. Out: nothing,
// or the first step that did not go as the test has it.
//
// What must hold: a step is done as chainsaw does it, and a step that this package does
// not know fails. A sleep is cut short; assertions that follow it are given the time
// that was cut. Each run works on a copy of the folder, and what it made is removed in
// the end.
//
// It knows nothing of policies: what stands in for the status that another program would
// write is answered by the Cluster.
//
// Start at Run (run.go); read.go is what can be read, tree.go what an assertion means.
package chainsaw
