// Package compare is what an operator, a wildcard or a leaf of a pattern says of values.
//
//	key: "{{ request.object.spec.replicas }}"      object.spec.replicas > 5
//	operator: GreaterThan
//	value: 5
//
//	image: "ghcr.io/*"                             container.image.startsWith('ghcr.io/')
//
// In: operands of package read, and an operator or the text of a pattern. Out: a condition,
// which counts where the operands can be read.
//
// What must hold: a value is what its field is (docs/semantics.md, deviation 15). Two values
// are compared as numbers, quantities or durations only where the schema or the policy's own
// literal says that they are; a text of the request is no pattern but for exactly *.
//
// Start at equality.go, order.go and membership.go, one for each family of operators, and at
// stringpattern.go for patterns.
package compare
