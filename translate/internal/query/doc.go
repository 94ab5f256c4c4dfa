// Package query lowers what stands in {{ }}: templates, JMESPath expressions, functions and
// the context that they name.
//
//	{{ request.object.spec.containers[?image].name }}
//
//	object.spec.containers.filter(container, has(container.image)).map(container, container.name)
//
// In: a text or a value of the policy. Out: an operand of package read.
//
// What must hold: JMESPath gives null for what is missing and an error for what has the wrong
// type, as in a pipe or a function; each of them is part of the operand: a branch that is an error, or a demand.
// The context entries that a query names are worked out before it, as Kyverno loads them; one
// that no query names never is.
//
// Start at template.go, then jmespath.go. function.go has the table of functions, context.go
// and entry.go the context, field.go what goes through lists.
package query
