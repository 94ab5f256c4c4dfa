// Package wildcard matches text against patterns in which * and ? are wildcards.
//
// In: pattern and text. Out: whether the text has the pattern's form.
//
// What must hold: * stands for any run of characters, ? for exactly one, nothing
// escapes them. Both sides may be the user's, so matching is linear where there is
// no ?, and takes at most the product of the lengths where there is.
//
// It does not know where wildcards count: callers do.
package wildcard
