// Package evaluate judges resources, documents and recorded requests by policies, natively
// and by the interpreter, and writes what both say.
//
// In: Options, which name what is judged, for whom, and what rules look up; and who
// judges: the policies of files, or those of a cluster. Out: an answer for each input, in
// their order, as a table or as JSON; diagnostics; and the exit code.
//
// What must hold: answers come in the order of the inputs, however many cores judge; of
// recorded requests there may be more than memory holds. What cannot be read is counted
// and told, and the others are judged. A rule that errs for want of an object that was
// not given counts as no disagreement.
//
// The lines of -o jsonl are an interface: they grow and do not change.
//
// Start at New (evaluation.go).
package evaluate
