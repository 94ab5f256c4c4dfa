// Package cellib is the CEL that Kyverno adds to the API server's, for its kinds of
// policies that are written in CEL.
//
// In: the kind of the policy, and a World, which has what functions ask for outside. Out
// of Options: options that extend an environment of the API server.
//
// What must hold: there is one table of functions, and each entry says its names, its
// types, and which kinds of policies have it. Functions take and give plain values, and
// never panic. A function that needs a cluster, a service or a registry asks the World,
// and errs where that does. What Kyverno has and this package has not is undeclared, so
// that an expression that calls it does not compile, and the error names it.
//
// It compiles nothing itself, and knows neither policies nor requests.
//
// Start at table.go. pure.go and text.go have what depends on arguments only, cluster.go
// and service.go what asks the World, image.go the references of images, verify.go what is proven of them, value.go how
// values go in and out, optional.go what orValue means.
package cellib
