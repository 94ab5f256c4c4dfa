// Package audit reads what native policies decided from the log of an API server, where the
// answer to the user is the only other place that says so.
//
// In: a file of events of audit.k8s.io/v1, a line of JSON each, that grows and is rotated; and who
// knows kvap's native policies. Out: a Decision for each rule that was violated, of what denies and
// of what audits.
//
// What must hold: it begins at the end of the file, and reads each line once. Nothing in the log
// ends it: lines that are no events, or too long, are counted and passed over. Dry runs are no
// decisions, nor is what other policies decide. The text of a denial counts only where the API
// server's admission says it, and not where it quotes what a user wrote.
//
// Any process may read the log that is at hand; API servers have one each. It decides nothing of
// who is told.
//
// Start at Log (log.go). event.go reads a line, and decision.go says whose rules it is about.
package audit
