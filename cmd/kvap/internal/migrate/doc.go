// Package migrate decides how policies leave Kyverno's webhook.
//
// A plan takes what compile made of the policies, and what existing objects violate. It says
// what each policy becomes, what stays behind and why, what will be different on purpose, and
// the waves in which the policies go, the safest first.
//
// A goal (shadow, enforce, rollback, adopt) takes a PolicyState, which is what is known of one
// policy: the policy in Kyverno's kind and in kvap's, the record, and what the controller and
// Kyverno were seen to do. It gives the next move, or says that the goal is reached. The first
// move records the intention. Each move follows from what is there, not from what was done
// before. So whoever asks again after a process was killed can go on, or back.
//
// What must hold: every policy is in exactly one wave, and a wave holds nothing that is
// riskier than its title says. Between any two moves somebody judges by every rule. Only
// objects that a migration has made are deleted, and Kyverno's policies only when the record
// has them.
//
// The package does not talk to a cluster, and has no clock: its callers carry moves out.
//
// Start at MakePlan (plan.go), and at Goal.Next (goal.go); each verb has a file: shadow.go,
// enforce.go, rollback.go and adopt.go. What every verb refuses is in refuse.go.
package migrate
