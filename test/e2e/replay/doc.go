// Package replay replays the chainsaw tests of public policies on a real control
// plane; it has nothing to import. The tests run by `make e2e`, for they carry the
// build tag e2e.
//
// In come the chainsaw-test folders of the corpus, where it is at hand. The policies
// of each are enforced by kvap alone: they are compiled, and what comes out is
// applied in their place. Then each step is done as it is written, and must succeed
// or be refused as it says. Kinds that the server does not know get permissive
// definitions.
//
// The chainsaw tests of policies that generate, clean up and change objects are
// replayed with `kvap-controller` in place of Kyverno, and assertions about objects
// come true.
//
// Kyverno's own cluster tests, half of which are in the corpus, are run as they are by
// package chainsaw, with the controller in place of Kyverno, where -conformance asks for
// it: TestConformance. testdata/conformance.yaml says which are counted apart and which
// are known to fail; the results are docs/conformance.md. TestRunner proves the runner on
// tests in testdata/chainsaw, of which some must fail.
//
// What must hold: no folder that can be replayed fails. One that cannot is listed
// with the reason: a step that this package does not know, such as a script, or a
// rule that has no native form. A step that waits does not: it waits for Kyverno,
// and what kvap makes is seen to be in force before the next step.
//
// Start reading at replay_test.go, and controller_test.go for the controller;
// chainsaw_test.go is what can be read. For Kyverno's own tests it is conformance_test.go.
package replay
