// Package migrate holds the tests of `kvap migrate` on a real control plane; it has
// nothing to import. They run by `make e2e`, for they carry the build tag e2e.
//
// In Kyverno's place is a stand-in: the interpreter behind webhooks with the names,
// labels and configurations of Kyverno's, which honours admission: false, refuses what
// Kyverno's own validation refuses, and says of policies that they are ready. `kvap
// controller` and `kvap migrate` run as processes of their own.
//
// What must hold: from before the first step to after the last, and on the way back, no
// bad request is admitted and no good one denied, also where `kvap migrate` is killed.
//
// TestFixtures does so with the policies of all fixtures at once. Each fixture sits at a
// table: its policies have a match condition, and are about the requests of one group of
// users only, so that they do not deny each other's good requests. What is asked are the
// fixtures' cases; what each answer must be is what Kyverno alone has answered first.
//
// Start reading at kyverno_test.go, then way_test.go, then fixturesway_test.go.
package migrate
