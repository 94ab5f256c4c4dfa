// Package jmespath reads the expression language of policies: JMESPath of 2015,
// and the strings with {{ }} variables and $( ) references that hold it.
//
// In: a text and the place of its first character. Out: an Expr or a Template, in
// which every node has its place; or the diagnostic that says what is wrong.
//
// What is accepted is what go-jmespath 0.4 accepts, so that an expression means
// here what it means to Kyverno. The grammar is the community library's, a
// younger relative; what differs is settled before it or after it. Its operators
// + - * / // %, its $ and its let never reach it or are refused. Its raw strings
// unescape \\, ours \' only. Its tree has no positions, so it parses a stand-in
// whose numbered names lead back to our tokens. And a variable inside a quoted
// string or name is kept as such: its value is data there, and never becomes
// syntax. String prints a tree such that Parse gives it back. No input panics.
//
// It does not evaluate. It knows the names and the types of the functions, but
// not what they do: that is the interpreter's work.
//
// Start at expr.go for the tree; then template.go, which splits strings, and
// parse.go. function.go is the table of functions.
package jmespath
