// Benchcluster measures the controller with many policies, on a real control plane.
//
// In: a number of policies. Out: how long until all of them are enforced, what a
// change of one costs, how much memory the controller takes and how much it writes,
// on standard output or, with -update, in a document. The controller is a process of
// its own, as in a cluster.
//
// Start at main.go.
package main
