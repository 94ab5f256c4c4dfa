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
// native form panics with a refusal, which refusalOf makes the rule's reason.
//
// It does not print, name objects finally or validate them: that is vap's work.
//
// Kyverno tells what is missing, what is null and what is an error; CEL tells values and
// errors, of which && and || swallow some. So what is built notes what it needs (needs.go),
// and a condition is a partial.Bool until it becomes an expression:
//
//	key: "{{ request.object.spec.replicas }}"     needs has(object.spec.replicas)
//	operator: GreaterThan                         object.spec.replicas > 5, which errs by itself
//	value: 5
//
// Start at lower.go, which drives the walk, and lowering.go, which says what it
// carries: what it gathers, and the environment that it stands in. Then pattern.go
// and jmespath.go, its two halves; operand.go is what an expression gives, place.go
// how a value of the request is read, and sequence.go how lists are gone through.
// internal/partial is the domain of what may be an error, internal/scalar judges what is
// known when compiling, and internal/pack puts what was lowered, in the words of
// internal/native, into drafts. internal/anchor reads the keys of patterns, internal/fields
// looks for fields that no object has.
package translate
