// Package verify puts the translation of a policy and the reference interpreter
// side by side, and looks for a request on which they disagree.
//
// In: a policy, what is known of the types of a cluster, and a budget. Out of
// Policy: the evidence for each rule, that is how many requests were tried, what
// came out, which of the rule's predicates were seen both ways; and, where the
// two sides disagree, the smallest request that was found to show it.
//
// What must hold: a request is one that an API server could hand to admission,
// so objects of known kinds fit their schema, and are filled in before they are judged. The same seed gives the same run. A
// disagreement is never excused here: the places where kvap differs from Kyverno
// on purpose are the same on both sides.
//
// It does not prove anything: no counterexample is evidence, not certainty. It
// judges rules, not bindings' exclusions of namespaces, and it asks nothing
// outside. Rules that have no native form have nothing to be held against, and
// are left out: so are all that change or generate objects, for which kvap has the
// interpreter alone.
//
// Start at judges.go, which judges one request by both; then request.go and
// object.go, which make requests.
package verify
