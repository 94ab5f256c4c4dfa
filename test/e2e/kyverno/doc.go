// Package kyverno tests the way of docs/migration.md on a real control plane with a real
// Kyverno: its admission and background controllers, as package test/kyverno runs them.
// A stream of requests goes on all the time, and a watch follows what was generated.
//
// The tests carry the build tags e2e and kyverno, so that no other run needs Kyverno:
// make e2e-kyverno.
//
// What they count is in the log: bad requests that were admitted, good ones that were
// refused, generated objects that were deleted or made anew, requests that nobody judged
// after Kyverno was uninstalled.
//
// Start at way_test.go.
package kyverno
