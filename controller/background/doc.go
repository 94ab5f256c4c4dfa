// Package background does the work that requests and policies start besides an answer:
// generate rules make objects, keep them as they are wanted, and remove them; mutate rules
// with targets change objects that are there.
//
// In: policies, each with only the rules that remain, set as a whole by Set;
// GenerateRequests, which the webhook makes of the requests that trigger a rule (Capture); a
// Cluster, to read and write; and changes of objects that rules have made or copied. Out:
// objects in the cluster, the status of GenerateRequests, and Notices, which become events.
//
// What must hold:
//   - The webhook writes a GenerateRequest before it answers the request that starts it, and
//     the Worker deletes it when the work is done. A process may end at any time: the next one
//     does the work again, with the same result.
//   - Nothing is written for a request that was refused in the end: work waits until the
//     object that triggers it is stored.
//   - Work that fails is tried again, later and later, and a Notice tells of it. No work is
//     dropped in silence. The requests whose work fails are bounded in number, size and time.
//   - A RuleRecord says what a rule makes before the rule makes it, so that any process finds
//     the objects when the rule is gone.
//   - Of the work for one trigger and rule one piece is done at a time.
//   - A policy of a namespace reaches nothing outside of it. What variables have become is
//     checked, and not their text.
//   - Only an object with the labels of the rule is removed, and only the one that was read.
//
// Package interp finds out what a rule wants. This package decides what to do about it, and
// knows the cluster only by its interfaces, and the webhook not at all. One process works at
// a time: its caller sees to that.
//
// Start at worker.go, which has the kinds of work; generate.go and
// mutateexisting.go do it. capture.go is what is kept of a request, cluster.go everything
// outside.
package background
