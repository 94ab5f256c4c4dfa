// Package deviation recognises the places where kvap differs from Kyverno on
// purpose.
//
// In comes a difference: a rule, a request, what Kyverno says and what is said
// instead. Out comes the listed deviation that it is, if it is one.
//
// What must hold: it goes by what the rule and the request are, never by what they
// are called, and it excuses nothing that is not in the table.
//
// It neither judges nor compiles. Where kvap reads a value otherwise than Kyverno, the
// interpreter gives both statuses itself; Reason says why.
//
// Start at List.
package deviation
