// Package report renders what was found: of conversions, checks, suites, verifications,
// plans, comparisons and the status of a cluster.
//
// In: plain values that say what was looked at and what came of it, and the
// diagnostics of the run. Out: text for a terminal, Markdown for a review, one
// self-contained HTML page, JSON, SARIF, JUnit and GitHub's annotations for programs,
// and PolicyReports.
//
// What must hold: the JSON forms are an interface; fields are added, never renamed
// or dropped, lists are never null, and the same values give the same bytes.
// Rules are listed as written in the source, each once. What a form has no place for
// is left out of that form alone.
//
// It does not decide anything, read files or know where its output goes; it knows
// nothing of drafts or requests, so that whoever has something to report fills the
// values in.
//
// Start at conversion.go, which has the values of a conversion, and text.go; a file of
// another subject (check.go, suite.go, plan.go, status.go) has its values, and those
// with a form's name (sarif.go, page.go) have the form.
package report
