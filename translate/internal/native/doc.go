// Package native has the words in which package translate tells its stage of packing
// what a rule became: for which target and operations, by which conditions, with
// which variables, params and messages.
//
// In: policies and the types of a schema. Out: values. It lowers no rule, and knows
// nothing of what shares a policy object.
//
// Start at target.go.
package native
