// Package doc writes a report in each of its formats: text for a terminal, Markdown, one
// self-contained HTML page, JSON, YAML, SARIF, JUnit and GitHub's annotations.
//
// In: a Document, which is data: a title, totals, and sections of text, tables, items and
// alerts. Out: the bytes of one format. What is empty is left out; a section that only some
// formats have says so.
//
// What must hold: each format has one renderer, and each renderer makes safe whatever it
// writes (text.go): names and messages are anybody's. In JSON and YAML no list is null. The
// same document gives the same bytes.
//
// It does not know what a report is about; package report makes documents of reports.
//
// Start at document.go, which has the model, then terminal.go, the shortest renderer.
package doc
