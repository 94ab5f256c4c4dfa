// Package read is how a value of the request is read in CEL, and what that demands.
//
//	request.object.spec.replicas           object.spec.replicas          demands has(object.spec.replicas)
//	request.object.spec.containers[].name  a sequence, over which        object.spec.containers.exists(container, …)
//	                                       others quantify
//
// In: the walk over one rule (Lowering: what it gathers, and the Environment that it stands in)
// and what an expression of the source names. Out: an Operand, which is a literal of the
// policy, a Place in the request, a Sequence, a choice or an error.
//
// What must hold: what is said of an operand is total where its demands hold. They are a
// function of it (DemandsOf), and whoever takes one joins them once: nothing is collected on
// the way. Only package partial makes an expression that errs. Where the schema tells that
// something is there, nothing is asked. Who changes an Environment changes a copy (Inside).
//
// Start at lowering.go, then operand.go, demands.go, place.go and sequence.go. The rooms above
// go through lists and compare what they find with these words, and import downward only:
// read, compare, query, condition and match and pattern, podsec and celrule, rule, mutate.
package read
