// Package check says what is wrong with admission policies before a cluster sees
// them: types, what the cluster will say of them, cost, and traps.
//
// In: ValidatingAdmissionPolicies, MutatingAdmissionPolicies and bindings, as kvap
// made them (Made) or as somebody wrote them (Written), and what is known of the
// types of one or more releases. Out: for each object its findings, each with a code
// and the place in the source; the warnings that kube-controller-manager will write
// into its status; and what its expressions cost.
//
// What must hold: a finding is true at run time, unless it says that it is a known
// false alarm of the cluster. A finding in an object that was made just now is at the
// source that it was made from; one in an object that was read is at its own line and
// column, inside of a block of text too. The same input gives the same findings in the same
// order, although objects are checked on every core.
//
// It converts nothing, judges no requests and asks no cluster.
//
// Start at Objects (check.go). Then types.go, cost.go and lint.go, which are what it
// does; errors.go has the words.
package check
