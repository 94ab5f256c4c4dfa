// Package rule lowers one validate rule: for each kind of its match and each operation, the
// match, the preconditions, the body and the message become one unit of package pack.
//
//	validate:                                      message: use a tag
//	  message: use a tag                           expression: object.spec.containers.all(…)
//	  foreach: [{list: …, pattern: …}]
//
// In: a rule, as written or expanded for pod controllers. Out: units, and what is to be told,
// or why the rule has no native form.
//
// What must hold: one walk decides and builds. A construct without a native form panics with
// a read.Refusal, which RefusalOf makes the rule's reason. An update of an object that
// violated before is excused as Kyverno excuses it (effect.go).
//
// Start at lower.go, which drives the walk; foreach.go is the loop, message.go the message,
// effect.go what is told of a rule that denies all or none, or always errs.
package rule
