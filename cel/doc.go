// Package cel has CEL expressions as trees. It builds, parses, rewrites, simplifies and prints
// them, and knows their cost and which release of Kubernetes understands them.
//
// In: calls of the constructors (Ident, Field, And, Scope.All, ...), or the text of an
// expression (Parse). Out: the text that goes into an API object. For example
//
//	s.All(object.Field("spec").Field("containers"), "c", func(c Value) Bool { return c.Has("image") })
//
// prints as
//
//	object.spec.containers.all(c, has(c.image))
//
// What must hold: the parser of every supported API server accepts what is printed, for every
// field name and literal, and gives the same tree again. A tree is immutable, and its macros
// stay as written. Rewriting keeps the value: what evaluated to a value evaluates to the same,
// and what was an error is an error still.
//
// The package does not type-check and does not evaluate. It knows nothing of policies, and it
// is the only one that prints CEL: no expression is made of strings.
//
// Start at tree.go, the constructors; print.go and simplify.go follow from it. functions.go is
// the table of what each release understands, and optional.go of what means another thing from
// some release on. guard.go makes expressions that are false where they would be an error.
// short.go is the form in which they are written in the end, denying.go the form of a check where
// an error denies as a violation does. paths.go is what an expression reads.
package cel
