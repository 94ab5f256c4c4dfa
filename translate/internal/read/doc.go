// Package read is how a value of the request is read in CEL, and what that needs.
//
//	request.object.spec.replicas           object.spec.replicas          needs has(object.spec.replicas)
//	request.object.spec.containers[].name  a sequence, over which        object.spec.containers.exists(container, …)
//	                                       others quantify
//
// In: the walk over one rule (Lowering: what it gathers, and the Environment that it stands in)
// and what an expression of the source names. Out: an Operand, which is a literal of the
// policy, a Place in the request, a Sequence, a choice or an error.
//
// What must hold: what is built is total where its Needs hold, and whatever needs something
// says so (Need). Only package partial makes an expression that errs. Where the schema tells
// that something is there, nothing is asked.
//
// Start at lowering.go, then needs.go, operand.go, place.go and sequence.go. The rooms above
// go through lists and compare what they find with these words, and import downward only:
// read, compare, query, condition and match and pattern, podsec and celrule, rule, mutate.
package read
