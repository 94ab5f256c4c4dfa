// Package vap is the target of the compiler: ValidatingAdmissionPolicies and
// their bindings.
//
// In come Drafts, whose expressions are trees. Out go, by Emit, the objects of
// admissionregistration.k8s.io/v1 with every field written that the API server
// would default; by Marshal their YAML or JSON; by Validate and TypeCheck what
// the API server has to say about such objects when they are created and after;
// by Differences what in them another release would evaluate otherwise;
// and by a Judge the verdicts that they give on requests.
//
// What must hold: the same draft gives the same bytes. A name is a function of
// the source. The objects that Emit returns without an error are accepted by the
// API server. A Judge runs the API server's own matching, match conditions,
// params and validation code, so its verdict is the server's.
//
// The package knows nothing of the source language. It does not decide what is
// translated, it does not default or validate the objects that requests carry,
// and it does not talk to a cluster. Judging does not convert between versions
// of a kind beyond changing the apiVersion.
//
// Start reading at Draft (draft.go), then Emit (emit.go), then Judge (judge.go).
package vap
