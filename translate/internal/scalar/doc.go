// Package scalar judges values that are known when compiling as Kyverno does:
// what a literal of a policy reads as, and how two literals compare.
//
// In: nil, booleans, numbers, texts, and lists and maps of them, as JSON has
// them. Out: plain values again: whether a text matches a wildcard, satisfies a
// string pattern, or is a number, quantity or duration, and in what order two are.
//
// It must agree with the expressions that package translate writes for values
// that are only known at run time. It builds no expressions and reads no policy.
//
// Start at pattern.go for patterns, and compare.go for the operators of conditions.
package scalar
