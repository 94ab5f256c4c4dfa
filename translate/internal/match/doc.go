// Package match says whom a rule is about: match, exclude, PolicyExceptions, and the
// namespaces that bindings leave out.
//
//	match: {any: [{resources: {kinds: [Pod], namespaces: ["prod-*"]}}]}
//
//	object.metadata.namespace.startsWith('prod-')
//
// In: the filters of a rule. Out: the part of them that resource rules of the API server do
// not say, as a condition.
//
// What must hold: a rule applies to exactly the requests that Kyverno has it apply to. What
// differs for all policies, as Kyverno's default filters, is told and not copied.
package match
