// Package condition lowers the conditions of preconditions and of deny.
//
//	all:
//	- {key: "{{ request.operation }}", operator: Equals, value: CREATE}
//	- {key: "{{ request.object.spec.replicas }}", operator: GreaterThan, value: 5}
//
//	request.operation == 'CREATE' && object.spec.replicas > 5
//
// In: any and all of the policy. Out: a condition, or its truth with an error apart.
//
// What must hold: Kyverno looks at conditions in order and stops at the first that decides;
// one that is an error decides.
package condition
