// Package apiserver is what an API server does with admission policies and their
// bindings, in process, by its own code.
//
// In come objects of admissionregistration.k8s.io/v1, of package vap or of anybody, and
// a release. Out go, by a Checker, why the API server would refuse them; by a TypeChecker
// what it would complain of in the status of those it took, and by a StatusChecker that
// on the cluster that is given; by Typed the same and more, from the types that objects
// have when expressions are evaluated; by Differences what another release would evaluate
// otherwise; by a Meter what an expression costs; by a Judge the verdicts on requests;
// and by a Mutator what MutatingAdmissionPolicies make of their objects.
//
// What must hold: a Judge runs the API server's own matching, match conditions, params and
// validation code, so its verdict is the server's; and a Mutator its patchers. A Checker and a TypeChecker compile each
// expression once where the server compiles it for each policy, and say the same words.
//
// It makes no objects, and knows nothing of drafts or of what objects were made from but
// the annotation that says it. It does not default or validate the objects that requests
// carry, it does not convert between versions of a kind beyond changing the apiVersion, and
// it does not talk to a cluster. It is large: it links hundreds of packages of the API
// server, so who only makes objects does not import it.
//
// Start reading at Validate (check.go), then Judge (judge.go), then TypeChecker
// (typecheck.go).
package apiserver
