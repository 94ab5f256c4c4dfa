// Package pack puts rules that are lowered into policy objects.
//
// In: units, a rule each, lowered for one target and some operations. Out: drafts with
// bindings, names and guards, and which rule is which member of them.
//
// What a draft denies is what its units deny, whatever shares an object with them.
// Each object is within the API server's budget, as far as the cost can be told, and
// where its packs end depends on the rules in it alone, so that a rule that comes or
// goes moves no other. It lowers nothing, and refuses nothing.
//
// Start at pack.go, which groups units and makes a draft of a group; then guard.go for the
// match condition at which good requests stop and for what is too much, and
// binding.go for what a violation leads to.
package pack
