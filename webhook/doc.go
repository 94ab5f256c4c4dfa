// Package webhook serves admission requests for the rules that have no native form.
//
// In: policies, each with only the rules that stay behind, set as a whole by Set;
// a World, which the rules look things up in; certificates; and AdmissionReviews
// over HTTPS, at the paths that package registration gives the policies. Out: what
// Kyverno would answer: a denial that names policies and rules, warnings, audit
// annotations, or a patch; and, to Options.Start, the work that an admitted request
// starts, before it is answered.
//
// What must hold:
//   - A request is judged by one set of policies, whatever happens meanwhile, and
//     an answer is given for each that was taken: none is dropped when policies or
//     certificates change or the server ends.
//   - A policy whose place changed answers at the old one too, until the
//     configuration that sends requests there is surely gone.
//   - The server says that it is ready once it has policies and a certificate, and
//     no longer when it is about to end. Before that it refuses, so that the
//     failure policy decides.
//   - What comes in is bounded: size, time, the memory of all that is read or judged,
//     which is waited for before reading, and how many are judged at once. Requests of
//     one kind at one path take half of the turns at most.
//   - A policy in shadow mode changes nothing for users and starts no work. It is judged,
//     and all that it says is recorded.
//
// The engine is package interp. What is decided here is what an answer does:
// actions, overrides by namespace, failure policies. The package writes nothing to
// a cluster, and knows nothing of its own registration.
//
// Start reading at server.go, the way of a request; then validate.go and
// mutate.go. start.go is the work that requests start; set.go is what is served where.
package webhook
