// Plot draws what judging adds to a request, from the table of docs/performance.md.
//
// In: the document, between the marks of test/benchadmission. Out: an SVG with a
// pair of bars for each row, for a Pod that is admitted and one that is denied, and
// the least and the greatest of the rounds. It is readable on light and dark pages.
//
// What must hold: the same table gives the same bytes, and docs/latency.svg is drawn
// from the table that is there, which a test holds.
//
// It measures nothing. Start at main.go; table.go reads, svg.go draws.
package main
