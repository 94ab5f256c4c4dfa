// Package policy is the source language: Kyverno-style policies as typed nodes,
// each with its place.
//
// In: the bytes of a file, YAML or JSON. Out of Parse: a File with its policies and
// exceptions, and a diag.List. Out of Expand and RulesFor: a policy's rules with
// those for pod controllers. Out of Marshal: YAML.
//
// What must hold: Parse never panics and never loses anything in silence. A value
// is what the API server would store had kubectl sent the file (scalar.go). A
// rule with an error is kept and marked Invalid; an error outside of the rules
// marks the policy and all its rules, for nobody can tell what they would do. A
// document that cannot be read does not take the others of its file along. Every
// node has a file, a line, a column and a field path; what Expand adds has the
// places of the rule it comes from.
//
// It knows nothing of CEL, judges nothing, and asks no cluster: whether a kind
// exists or a variable resolves is for others.
//
// Start at parse.go, then rule.go; object.go is how a mapping is read. file.go
// finds the documents, yaml.go and json.go make the nodes, carried.go takes policies out of what
// carries them, escape.go reads templates that only escape braces, and expand.go is the step for pod
// controllers.
package policy
