// Package evidence gathers what shows that Kyverno and what takes its place say the
// same, or do not.
//
// In come the judges of some policies (package judge), and what the sources hold:
// objects that are there, Kyverno's reports about them, what kvap's webhook said in
// shadow, recorded requests, an API server's audit log, and what verify finds. Out comes a report.Comparison: for each
// rule what was seen, agreed and disagreed, each disagreement with what both sides
// say, and what the evidence lacks.
//
// What must hold: a source counts only where both sides' answers are known; where
// one is not, as of a report that is older than its object, that is counted as
// unclear and never as agreement. The same input in the same order gives the same
// comparison.
//
// It reads no file and asks no cluster, and it decides nothing about a migration.
//
// Start at Ledger (ledger.go), which all sources write into; then one file for each
// source: judged.go is objects, requests and what verify found; reports.go, shadow.go, audit.go.
package evidence
