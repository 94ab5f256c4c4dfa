// Package suite runs the tests that users have of their policies: the
// kyverno-test.yaml of the Kyverno command line.
//
// In comes a suite's file, with the policies, resources, values, user and
// exceptions that it names; out goes a row for each rule and resource that its
// results list: what was expected, what the native translation and the
// interpreter say, and whether that is a pass.
//
// What must hold: a row passes only if both judges that could be asked gave what
// is expected. What cannot be judged says why and does not count as passed;
// neither does what Kyverno passes because no rule looked at the resource.
//
// What mutate and generate rules make is held against the objects that a row names, and
// so is what native policies make that mutate. Nothing verifies signatures, and nobody is
// asked: mocked values take the place of what the cluster would say.
//
// Start at Read (read.go), the form of a suite; then Run (run.go), and mock.go for
// how values reach the judges.
package suite
