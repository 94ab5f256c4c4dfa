// Package mutating is the second target of the compiler: MutatingAdmissionPolicies and
// their bindings.
//
// In come Drafts, whose expressions are trees: what they have in common with policies that
// validate is a draft of package vap, and beside it are the mutations. Out go, by Emit, the
// objects of the release, with every field written that the API server would default.
//
// What must hold: the same draft gives the same bytes, and the mutations stay in their
// order. A kind of package vap and one of this package may have the same name: they are
// different kinds to a cluster.
//
// The package decides nothing about what is translated. What an API server does with the
// objects is in package vap/apiserver: it checks them, and its Mutator lets them change
// objects.
//
// A draft of an Existing is of a policy that changes objects which are there: no API server has such, and
// EmitExisting gives package celpolicy its texts.
//
// Start at Draft (draft.go), then Emit (emit.go).
package mutating
