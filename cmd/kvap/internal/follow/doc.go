// Package follow prints how the rules of a policy become CEL, step by step: what each key and
// value of the source is in the request, what a condition says and when it is an error, and
// what is left when it is shortened.
//
// In: a policy file. Out: text for people. What must hold: it prints what the walk decided,
// and decides nothing. docs/core.md has two examples, which a test holds to what is printed.
//
// Start at follow.go.
package follow
