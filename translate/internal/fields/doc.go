// Package fields looks for fields that a rule names and no object has:
//
//	key: "{{ request.object.spec.replica }}"    no Deployment has a field spec.replica; did you mean replicas?
//
// In: a rule, its forms with the objects that they are about, or a policy in CEL, and the
// types of kinds. Out: warnings, with places in what is written. Such a field is translated as
// faithfully as any other, so nothing here changes what a rule becomes; and where one kind
// may have the field, nothing is said.
//
// It tells besides what Kyverno reads otherwise than it seems (unknown.go): a regular expression
// where there are only wildcards, and parts of a pattern that are not looked at.
//
// Start at Unknown, which goes through the rule with a walk; walk.go goes through
// expressions in JMESPath too, expressions.go through those in CEL.
package fields
