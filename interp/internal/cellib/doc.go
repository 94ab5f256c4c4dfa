// Package cellib is the CEL that Kyverno adds to the API server's, for
// ValidatingPolicies.
//
// In: a World, which has what functions ask for outside. Out of Options: options
// that extend an environment of the API server.
//
// What must hold: functions take and give plain values, and never panic. A
// function that needs a cluster, a service or a registry asks the World, and errs
// where that does. What Kyverno has and this package has not is undeclared, so that
// an expression that calls it does not compile, and the error names it.
//
// It compiles nothing itself, and knows neither policies nor requests.
//
// Start at Options. pure.go has what depends on arguments only, lookup.go what asks
// the World, image.go the references of images, optional.go what orValue means.
package cellib
