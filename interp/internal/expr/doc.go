// Package expr evaluates JMESPath expressions and templates the way Kyverno does.
//
// In: an expression or a template as package jmespath reads it, and data: plain Go
// data as JSON has it, or a Scope, whose names are looked up one by one. What
// functions ask for besides, such as the time, comes in Surroundings. Out: the
// value, as plain data, and where it comes from (provenance.go).
//
// What must hold: nothing panics, and the data are never changed. Every expression
// ends: steps and the size of texts are bounded, and the context is looked at. An
// expression that names a key that its map does not have fails with an error that
// IsUnknownKey knows; most constructs of the language take it as null. Kyverno's
// own functions are as section 11 of the semantics has them; where Kyverno panics,
// they err.
//
// It does not parse, knows no policies and no requests, and loads no context
// entries: a Scope does.
//
// Start at Eval, then node.go, one case for each node of the tree. function.go says
// how functions are called; the function_*.go files hold them, by what they work on.
package expr
