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
// native form panics with a read.Refusal, which rule.RefusalOf makes the rule's reason.
//
// It does not print, name objects finally or validate them: that is vap's work.
//
// Kyverno tells what is missing, what is null and what is an error; CEL tells values and
// errors, of which && and || swallow some. So an operand says what it demands in order to be
// read (read.Demands), and a condition is a partial.Bool until it is packed:
//
//	key: "{{ request.object.spec.replicas }}"     demands has(object.spec.replicas)
//	operator: GreaterThan                         object.spec.replicas > 5, which errs by itself
//	value: 5
//
// The rooms in internal import downward only. From the ground up:
//
//	partial     what may be an error              read       how a value of the request is read
//	scalar      what is known when compiling      compare    operators, wildcards, leaves of patterns
//	anchor      the keys of patterns              query      {{ }}: templates, JMESPath, context
//	native      what a rule became                condition, match, pattern, podsec, celrule
//	pack        rules in policy objects           rule       one validate rule
//	fields      fields that no object has         mutate     mutate rules
//
// Start at lowered.go and translate.go, which choose the room of a rule; then the doc.go of
// internal/read, what all of them stand on, and of internal/rule, the way of a validate rule.
package translate
