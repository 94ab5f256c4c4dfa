// Package jsonpatch applies JSON patches the way Kyverno's patchesJson6902 does,
// and makes them.
//
// In of Parse: the text of a patch, JSON or YAML. In of Patch.Apply: an object as
// plain data. Out: the object after the patch, or why the patch does not apply.
// Diff makes a patch of the difference of two objects.
//
// What must hold: the object is not changed, and the result shares nothing with
// the patch that a later operation could change. The differences from RFC 6902 are
// Kyverno's: add makes missing parents, remove takes what is missing for removed,
// indexes may be negative. The size of what a patch makes is bounded. Applying what
// Diff made to the first object gives the second.
//
// It fills in no variables, and knows nothing of kinds.
//
// Start at Parse and Apply; pointer.go walks documents.
package jsonpatch
