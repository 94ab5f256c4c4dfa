// Package background carries out what requests and policies start besides an
// answer: generate rules make objects, keep them as they are wanted, and remove them;
// mutate rules with targets change objects that are there.
//
// In: policies, each with only the rules that remain, set as a whole by Set;
// GenerateRequests, which the webhook makes of the requests that trigger a rule
// (Capture); a Cluster, to read and write; and news of objects that were generated or
// copied. Out: objects in the cluster, the status of GenerateRequests, and Notices
// for whoever reads events.
//
// What must hold:
//   - What a request has started is there before the request is answered and goes
//     only when the work is done, so that a process may end at any time: whatever was
//     done is done again by the next, and comes to the same.
//   - Nothing is written for a request that was refused in the end: work waits until
//     the object that triggers it is stored.
//   - A failure is tried again, later and later, and told. No work is dropped in
//     silence. What stays of work that fails is bounded in number, size and time.
//   - What a rule makes is written down in a RecordStore before it is made, so that it is
//     found when the rule is gone, whoever works then.
//   - Work for one trigger and rule is done one after another.
//   - A policy of a namespace reaches nothing outside of it: what variables have
//     become is checked, and not their text.
//   - Only an object that bears the labels of the rule is removed, and only the one
//     that was looked at.
//
// What a rule wants is found out by package interp. The package decides what to do
// about it, and knows no cluster but by its interfaces, nor the webhook. Only one
// process works at a time; who that is others decide.
//
// Start at worker.go, the way of a piece of work; then generate.go and
// mutateexisting.go. capture.go is
// what is kept of a request, cluster.go everything outside.
package background
