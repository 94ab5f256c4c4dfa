// Package interp is the second opinion: it judges an admission request straight from the
// policy, the way Kyverno does, and knows nothing of the CEL that the policy is translated to.
//
// In: policies and exceptions as package policy reads them, and requests. What a rule asks for
// besides comes from a World. Out:
//   - of Judge, for every rule the status that Kyverno gives (pass, fail, skip, error, or
//     none), with Kyverno's message;
//   - of Mutate, for every mutate rule and MutatingPolicy its status, its message and the
//     object behind it, and the object after all of them;
//   - of Triggered and MutateExisting, which rules with targets a request triggers, and what
//     such a rule makes of the objects that it selects among those of an ObjectReader;
//   - of GenerateTriggers and Generate, what a request means to generate rules, and the
//     objects that such a rule wants;
//   - of a Cleanup, which objects a cleanup policy deletes; of NextRun, when it is due; of
//     Expiry, when an object ends whose label says so.
//
// What must hold: the package shares no code with the translation. The two agree because both
// are right, not because they are one. Where they differ from Kyverno on purpose, the list of
// deviations says so; its numbers stand in the comments. Judging ends: patterns, expressions,
// context entries and answers are bounded, and loops look at the time that the caller gives.
// Whatever goes wrong in a rule, a crash too, is that rule's error and no other's. The package
// changes nothing that it judges, and one request leaves no trace for the next.
//
// The package does not decide whether a request is refused: actions and failure policies are
// the caller's, but for the one place where the action is part of the verdict (existing.go).
// It does not fill in what the API server defaults. It does not verify signatures itself: a
// Registry of the World says what is proven of an image. It writes nothing anywhere: what
// mutate, generate and cleanup rules want comes out as values, for the caller to carry out.
// Judge says nothing of these rules, and Mutate nothing of others.
//
// Start at judge.go, the way of a request through a rule; then validation.go, pattern.go and
// condition.go, what rules are made of. vars.go is what expressions see; package expr
// evaluates them. validating.go judges ValidatingPolicies, with Kyverno's own CEL from package
// cellib; celforms.go has the forms for controllers of pods. mutate.go runs mutate rules, with
// patches from packages merge and jsonpatch, and mutating.go MutatingPolicies, with those of
// the API server. mutateexisting.go runs those with targets; generate.go and generated.go run
// generate rules; cleanup.go and schedule.go are about what ends. world.go and objects.go are
// everything outside.
package interp
