// Package vap is the target of the compiler: ValidatingAdmissionPolicies and
// their bindings.
//
// In come Drafts, whose expressions are trees. Out go, by Emit, the objects of
// admissionregistration.k8s.io/v1 with every field written that the API server
// would default; and by Marshal their YAML or JSON, without these defaults in what
// is matched. An object says in an annotation what it was made from, which
// TranslationOf reads.
//
// What must hold: the same draft gives the same bytes. A name is a function of
// the source. The objects that Emit returns without an error are accepted by the
// API server, which package apiserver, below, has the tests of.
//
// The package knows nothing of the source language, and of the API server only the
// types of its objects, its defaults and its limits: what it does with the objects is
// package apiserver. It does not decide what is translated, and it does not talk to a
// cluster.
//
// Start reading at Draft (draft.go), then Emit (emit.go).
package vap
