// Package migrate plans how policies leave Kyverno's webhook.
//
// In comes what compile made of the policies. Out comes a plan: what each policy
// becomes, what stays behind and why, what will be different on purpose, and the
// waves in which the policies go, the safest first.
//
// What must hold: every policy is in exactly one wave; a wave holds nothing that
// is riskier than its title says; the same input gives the same plan, whatever the
// order of the files.
//
// It does not talk to a cluster, and it changes nothing: carrying a plan out is
// its callers' part.
//
// Start at MakePlan (plan.go).
package migrate
