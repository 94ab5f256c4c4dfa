// Package report renders what was converted.
//
// In: plain values that say which policies and rules were read, where each rule
// went and why, and the diagnostics of the run. Out: text for a terminal,
// Markdown for a review, and JSON for programs.
//
// What must hold: the JSON form is an interface; fields are added, never renamed
// or dropped, lists are never null, and the same values give the same bytes.
// Rules are listed as written in the source, each once.
//
// It does not decide anything, read files or know where its output goes; it knows
// nothing of policies or drafts, so that whoever has something to report fills
// the values in.
//
// Start at conversion.go; then text.go.
package report
