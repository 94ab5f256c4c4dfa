// Benchscan measures the reports of the controller with many objects, on a real control
// plane.
//
// In: how many policies and objects. Out: how long the first round takes, with how much
// memory and how many requests, and what is read, judged and written afterwards: at rest,
// when the API server was away, when watches end, when many objects come that violate
// something, and when the controller was killed within its first round. A table is written
// on standard output or, with -update, in a document. The controller is a process of its own,
// as in a cluster, and reaches the API server through a proxy that can cut its connections.
//
// The program knows which objects violate something, so it sees whether reports are in step.
// It is run by make bench-scan, not by any test.
//
// Start at main.go, then steps.go.
package main
