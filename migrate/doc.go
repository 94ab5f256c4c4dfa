// Package migrate decides how policies leave Kyverno's webhook.
//
// Into a plan comes what compile made of the policies, and what existing objects
// violate. Out comes what each policy becomes, what stays behind and why, what will be
// different on purpose, and the waves in which the policies go, the safest first.
//
// Into a goal (shadow, enforce, rollback, adopt) comes what is known of one policy: the
// policy in Kyverno's kind and in kvap's, the record, and what the controller and
// Kyverno were seen to do. Out comes the next move, or that the goal is reached. The
// intention is recorded before the first move; each move follows from what is there,
// not from what was done before, so a process that was killed is gone on from, and
// back from, by asking again.
//
// What must hold: every policy is in exactly one wave, and a wave holds nothing that
// is riskier than its title says; at every moment between two moves somebody judges by
// every rule; only what a migration has made is deleted, and Kyverno's policies only
// when they are in the record.
//
// It does not talk to a cluster, and has no clock: carrying moves out is its callers'
// part.
//
// Start at MakePlan (plan.go), and at Goal.Next (goal.go); each verb has a file: shadow.go,
// enforce.go, rollback.go and adopt.go. What every verb refuses is in refuse.go.
package migrate
