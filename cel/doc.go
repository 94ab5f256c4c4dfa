// Package cel has CEL expressions as trees: it builds, parses, rewrites,
// simplifies and prints them, and knows their cost and which release of
// Kubernetes understands them.
//
// In: calls of the constructors (Ident, Field, And, Scope.All, ...), or the text
// of an expression (Parse). Out: the text that goes into an API object.
//
// What is printed must be accepted by the parser of every supported API server,
// for every field name and literal; what is printed and parsed again is the same
// tree. A tree is immutable, and its macros stay as written. Rewriting keeps the
// value: what evaluated to a value evaluates to the same, and what was an error
// is an error still.
//
// The package does not type-check and does not evaluate. It knows nothing of
// policies, and it is the only one that prints CEL: no expression is made of
// strings.
//
// Start at tree.go, the constructors; print.go and simplify.go follow from it.
// functions.go is the table of what each release understands, and change.go of
// what means another thing from some release on; guard.go makes expressions that
// are false where they would be an error; short.go is the form in which they are
// written in the end.
package cel
