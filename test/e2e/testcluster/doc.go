// Package testcluster is what end-to-end tests stand on: a real control plane with the
// definitions of kvap.dev, its administrator, and the program, built. Like the tests it
// carries the build tag e2e.
//
// In: what a package of tests wants besides. Out: a Cluster that all tests of the package
// share, made and ended by Run. What must hold: nothing of it stays behind, however the
// tests end; what a test applies goes when it ends.
//
// It tests nothing, and knows of no controller or webhook: who runs them is the tests'
// part.
//
// Start at cluster.go.
package testcluster
