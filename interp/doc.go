// Package interp is the second opinion: it judges an admission request straight
// from the policy, the way Kyverno does, and knows nothing of the CEL that the
// policy is translated to.
//
// In: policies and exceptions as package policy reads them, and requests. What a
// rule asks for besides comes from a World. Out of Judge: for every rule the
// status that Kyverno gives (pass, fail, skip, error, or none), with Kyverno's
// message. Out of Mutate: for every mutate rule and MutatingPolicy its status and
// message and the object behind it, and the object after all of them. Out of Triggered and
// MutateExisting: which rules with targets a request triggers, and what such a rule
// makes of the objects that it selects among those of an Objects. Out of
// GenerateTriggers and Generate: what a request means to generate rules, and the
// objects that such a rule wants. A Cleanup tells which objects a cleanup policy
// deletes; NextRun when it is due; Expiry when an object ends whose label says so.
//
// What must hold: it shares no code with the translation; the two agree because
// both are right, not because they are one. Where they differ from Kyverno on
// purpose they do so by the list of deviations, whose numbers stand in the
// comments. Judging ends: patterns, expressions, context entries and answers are
// bounded, and loops look at the time that the caller gives. Whatever goes wrong
// in a rule, a crash too, is that rule's error and nobody else's. Nothing that is
// judged is changed, and one request leaves no trace for the next.
//
// It does not decide whether a request is refused: actions and failure policies
// are the caller's, but for the one place where the action is part of the
// verdict (existing.go). It does not fill in what the API server defaults. It
// does not verify signatures; rules that do are reported as unsupported. It writes
// nothing anywhere: what mutate, generate and cleanup rules want comes out as values,
// for the caller to carry out. Judge says nothing of these rules, and Mutate nothing
// of others.
//
// Start at judge.go, the way of a request through a rule; then validation.go,
// pattern.go and condition.go, what rules are made of. vars.go is what expressions
// see; package expr evaluates them. validating.go judges ValidatingPolicies, with
// Kyverno's own CEL from package cellib; celforms.go has the forms for controllers of pods.
// mutate.go runs mutate rules, with patches from packages merge and jsonpatch, and
// mutating.go MutatingPolicies, with those of the API server; mutateexisting.go those with targets, generate.go
// and generated.go generate rules; cleanup.go and schedule.go what ends. world.go and
// objects.go are everything outside.
package interp
