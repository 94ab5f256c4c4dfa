// Package wildcard matches text against patterns in which * and ? are wildcards.
//
// In: pattern and text. Out: whether the text has the pattern's form.
//
// What must hold: * stands for any run of characters, ? for exactly one, nothing
// escapes them, and matching takes at most the product of the lengths.
//
// It does not know where wildcards count: callers do.
package wildcard
