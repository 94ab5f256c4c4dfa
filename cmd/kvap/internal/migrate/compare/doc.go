// Package compare gathers evidence in a cluster, or in files, that Kyverno and what takes
// its place say the same, and records it.
//
// In: what is compared (policies, the native objects in their place, what both look up)
// and the sources of evidence: objects and Kyverno's reports of a cluster or given ones,
// lines of recorded requests and of an audit log, and how much verify may look for.
// Out: a report.Comparison, and with a cluster the record of it on each policy.
//
// What must hold: where policies or native objects change meanwhile, the evidence begins
// anew; a comparison is recorded with the digest of all that it speaks of; what could not
// be read is told, and speaks against a policy where it may have been about it.
//
// It weighs no evidence itself: package evidence does. It reads no file.
//
// Start at Comparing.Run (compare.go).
package compare
