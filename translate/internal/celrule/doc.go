// Package celrule takes over what a policy says in CEL: ValidatingPolicies, and validate.cel
// of a rule.
//
//	validations:                                   the same text, but for what Kyverno adds:
//	- expression: object.spec.replicas < 10        functions, exceptions, pod controllers
//
// In: a policy or a rule in CEL. Out: drafts whose CEL is the source's, or why the API server
// would not take it.
//
// What must hold: nothing is changed that nothing forces. What does not compile is an error at
// its line, and what Kyverno's library has alone is left to the webhook with a code.
//
// Start at validating.go and celrule.go. scope.go reads expressions
// as Kyverno does; celrule.go asks what the API server takes.
package celrule
