// Package translate lowers the rules of policies to native policies.
//
// In: a policy.Policy. Out: vap.Drafts, and for every rule where it is judged:
// natively, or by the webhook with the diagnostic that says why.
//
// A draft denies a request if and only if the policy does. Where CEL differs from
// Kyverno (missing fields, texts that read as numbers, empty lists), the
// construct's file says how the gap is closed; docs/semantics.md has the table.
// Where the schema of a kind is known, the expressions rely on it; where it is
// not, each step is guarded. One walk decides and builds: a construct without a
// native form panics with a refusal, which lowerRule turns into the rule's reason.
//
// It does not print, name objects finally or validate them: that is vap's work.
//
// Start at lower.go, which drives the walk; then pattern.go and jmespath.go, its
// two halves; place.go explains how a place in the request is read.
package translate
