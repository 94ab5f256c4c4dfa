// Conformance judges a corpus of recorded admission requests by the native
// translation of its policies, and compares with the recorded verdicts.
//
// In come the corpus's folder and the compiler; out go a line for each policy,
// the rules that have no native form, totals, and 1 as exit code where anything
// disagrees. Where there is no corpus, it says so and succeeds.
//
// What must hold: the API server's own code judges, and nothing but the table in
// internal/deviation excuses a disagreement. It never looks at what a policy is called.
// The reference interpreter is asked about the same cases; it has to give the
// recorded status exactly. Of a ValidatingPolicy one status is recorded for all its
// forms (validating.go). Mutate rules run on requests of their own, for which statuses
// and the object afterwards are recorded (mutating.go); so do MutatingPolicies, each with
// one status (mutatingpolicy.go). Their native form, where they have one, is held to the
// interpreter, object by object (mutatingnative.go).
//
// With -to kyverno nothing is judged natively: policies of Kyverno's kinds in CEL, made of the
// native objects, are judged by the interpreter and held to the same records (kyverno.go), and
// MutatingPolicies to the rules that they come from (kyvernomutating.go).
//
// Start reading at run (main.go), then examine (policy.go).
package main
