// Package snippets reads the code blocks of a page, so that tests can run what readers copy.
//
// In: a page in Markdown. Out: its blocks, with the heading above each and the word behind
// the fence.
//
// It runs nothing. Start at Read.
package snippets
