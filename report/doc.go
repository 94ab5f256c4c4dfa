// Package report says what was found: of conversions, checks, suites, verifications,
// plans, comparisons and the status of a cluster.
//
// In: plain values that say what was looked at and what came of it, and the
// diagnostics of the run. Out: a document of each (package doc), which package doc
// writes in any format; and PolicyReports, which are objects of an API.
//
// What must hold: the JSON forms are an interface; fields are added, never renamed
// or dropped, lists are never null, and the same values give the same bytes.
// Rules are listed as written in the source, each once. What a format has no place for
// is left out of that format alone.
//
// It does not decide anything, read files or know where its output goes, nor how a format
// is written; it knows nothing of drafts or requests, so that whoever has something to
// report fills the values in.
//
// Start at finish.go: the values of a report, and their document. A longer report has these
// in two files, such as conversion.go and conversiondocument.go.
package report
