// Package generating has the drafts of policies that generate objects, which no API server
// has: they are of Kyverno's kinds in CEL.
//
// In comes nothing; package translate makes the Drafts, whose expressions are trees: what they
// have in common with policies that validate is a draft of package vap, and beside it are the
// entries that call the generator. Out go, by Emit, the frame as an object of package vap and
// the entries as text. Package celpolicy makes policies of these.
//
// What must hold: the same draft gives the same bytes, and the entries stay in their order.
//
// Start at Draft (draft.go).
package generating
