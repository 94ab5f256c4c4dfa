// Package partial is the value domain between Kyverno and CEL. A condition of Kyverno's
// errs, or holds, or does not; of CEL's && and || an error is hidden by what another term
// says. So a condition is two things: one expression, which is an error where Kyverno errs,
//
//	key: "{{ request.object.spec.a }}"     object.spec.a == 'x'
//	operator: Equals
//	value: x
//
// and, for whoever counts an error as something else, how it comes out, asked apart:
//
//	Holds: has(object.spec.a) && object.spec.a == 'x'
//	Fails: has(object.spec.a) && object.spec.a != 'x'
//	Readable: has(object.spec.a)
//
// In: conditions of CEL, and what must hold for them to have a value. Out: what Kyverno makes
// of several of them. What reads a value that may be missing errs by itself; for a condition
// that may hold without reading it, the expression is
//
//	has(object.spec.a) ? object.kind == 'Pod' || object.spec.a == 'x' : dyn({}).a == true
//
// Fault is the only function that makes an expression which is an error. What must hold: the
// three questions are never an error, and Readable is where one of the others is true. The
// tests try all cases of each combinator against Kyverno's order of evaluation. It knows
// nothing of the request, nor of policies.
//
// Start at Bool.
package partial
