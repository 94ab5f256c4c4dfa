// Package pattern lowers validate.pattern and anyPattern, with their anchors.
//
//	spec:
//	  containers:
//	  - (image): "*:latest"
//	    imagePullPolicy: Always
//
//	object.spec.containers.all(container,
//	  !container.image.endsWith(':latest') || container.imagePullPolicy == 'Always')
//
// In: a pattern, and the value that it is held against. Out: an outcome, which is steps in
// Kyverno's order of evaluation, and at the end: the object does not fail the pattern.
//
// What must hold: conditions and globals come before what they guard; an element that is
// skipped fails nothing; the ledger of anchors that were seen counts as Kyverno's does.
//
// Start at rulepattern.go, then pattern.go. anchors.go is the ledger.
package pattern
