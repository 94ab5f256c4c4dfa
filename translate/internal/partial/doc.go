// Package partial is the value domain between Kyverno and CEL. A condition of Kyverno's
// errs, or holds, or does not; of CEL's && and || an error is hidden by what another term
// says. So both questions are kept apart until the last step:
//
//	key: "{{ request.object.spec.a }}"     Errs:  !has(object.spec.a)
//	operator: Equals                       Holds: object.spec.a == 'x'
//	value: x
//
// In: conditions of CEL that have a value wherever Errs is false. Out: what Kyverno makes of
// several of them, and with Native one expression of CEL. What reads a value that may be
// missing errs by itself, so that the above is
//
//	object.spec.a == 'x'
//
// and for a condition that may hold without reading it
//
//	has(object.spec.a) ? object.kind == 'Pod' || object.spec.a == 'x' : dyn({}).a == true
//
// Failing is the only function that makes an expression which is an error. What must hold: a
// combinator never reads Holds where Errs is true; the tests try all cases of each against
// Kyverno's order of evaluation. It knows nothing of the request, nor of policies.
//
// Start at Bool.
package partial
