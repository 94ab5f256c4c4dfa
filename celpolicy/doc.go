// Package celpolicy is the third target of the compiler, beside packages vap and mutating:
// policies of Kyverno's own kinds in CEL, of policies.kyverno.io.
//
// In comes what package compile made of policies of kyverno.io: native objects with their
// bindings, drafts of package generating, and those of package mutating that change existing
// objects; and cleanup policies, of which Cleanups makes
// rules first. Out go, by Convert, a ValidatingPolicy for each native object and binding, a
// MutatingPolicy for each that mutates or is such a draft, and GeneratingPolicies; and for every rule that Kyverno's
// kinds cannot say, the diagnostic that says why; by Cleanups, a DeletingPolicy for each cleanup
// policy.
//
// What must hold: a policy that comes out denies a request if and only if the native object
// does, and one that deletes does what the cleanup policy does. Nothing is lowered here: expressions are those of the native objects, and changed only
// where the same text means something else to Kyverno. There, an object that is not there is an
// empty map and not null, there are no params and no authorizer, and orValue has no type and is not lazy.
// The same input gives the same bytes.
//
// Start reading at Convert (convert.go), then expression.go, which says what is changed in
// expressions.
package celpolicy
