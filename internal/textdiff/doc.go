// Package textdiff says how two texts differ, line by line, for people.
//
// In come two texts; out come the lines that went, with a minus, those that came,
// with a plus, and a few around them.
//
// What must hold: taking the lines without a plus gives the first text, and those
// without a minus the second, but for what is left out around the changes. The
// changes may be more than the fewest: what they cost grows with the length of the texts,
// not with its square.
//
// It knows nothing of what the lines say.
//
// Start at Diff.
package textdiff
