// Package merge lays a strategic merge patch with anchors over an object, the way
// Kyverno's patchStrategicMerge does.
//
// In: an object and a patch as plain data (nil, bool, int64, float64, string,
// []any, map[string]any), with all variables filled in, and a Matcher that holds
// values to the patterns of conditions. Out of Apply: the object after the patch,
// or why it cannot be applied. A condition that does not hold is not an error: the
// patch is then empty.
//
// What must hold: neither the object nor the patch is changed; the result may
// share parts with both, so nobody may change it either. Nothing panics, work and
// size are bounded, and the result does not depend on the order of a map. How
// lists merge goes by a frozen table of the built-in kinds of Kubernetes 1.21,
// as Kyverno's does; the lists of other kinds are replaced as a whole. It is not
// apimachinery's merge, which differs in directives, deletion, order, and
// elements without keys.
//
// Where Kyverno's result is an accident of how it is made, Apply does what the
// author of a patch means, or errs where that is anybody's guess (deviation 14).
// The comments say so where it is.
//
// It fills in no variables, knows no rules, and does not know JSON patches.
//
// Start at Apply; resolve.go settles the anchors, template.go those in lists,
// merge.go and list.go merge what is left, kinds.go is the table.
package merge
