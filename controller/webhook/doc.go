// Package webhook serves admission requests for the rules that have no native form.
//
// In: policies, each with only the rules that stay behind, set as a whole by Set; a World,
// which the rules look things up in; certificates; and AdmissionReviews over HTTPS, at the
// paths that package registration gives the policies. Out: what Kyverno would answer, which is
// a denial that names policies and rules, warnings, audit annotations, or a patch; and, to
// Options.Start, the work that an admitted request starts, before it is answered.
//
// What must hold:
//   - One set of policies judges a request, whatever happens meanwhile. The server answers
//     each request that it has taken, also when policies or certificates change or it ends.
//   - A policy whose route changed answers on the old one too, until the configuration that
//     sends requests there is surely gone.
//   - The server says that it is ready once it has policies and a certificate, and no longer
//     when it is about to end. Before that it refuses, so that the failure policy decides.
//   - What comes in is bounded: connections, size, time, memory and how many requests are judged
//     at once. Memory is counted as bytes come, and no body keeps another one's bytes from
//     coming. Whoever asks from one address takes at most three quarters, and leaves room to others.
//     Requests of one kind at one path take at most half of the turns, and policies of one
//     namespace so many turns, steps and so much time.
//   - What is not judged leaves a trace: a metric, and a line of the log.
//   - A policy in shadow mode changes nothing for users and starts no work. The server judges
//     by it, and records all that it says.
//
// The engine is package interp. This package decides what an answer does: actions, overrides
// by namespace, failure policies. It writes nothing to a cluster, and knows nothing of its own
// registration.
//
// Start at server.go, the way of a request, which body.go reads; then validate.go, which has the work that requests
// start, and mutate.go; set.go is what is served where.
package webhook
