// Package convert reads policies from sources, compiles them, and says what became of
// them, for the verbs of the command line.
//
// In: Sources, and the Choices that flags ask for. Out: a Compilation, in the order of the
// input: policies, rules and their native objects; and of it the report's values, the
// source beside what enforces it, what a request meets and costs, and files: the objects
// of each policy, and the policies of the rules that stay behind. Read is for verbs that
// judge: it takes native objects among the sources as they are.
//
// What must hold: what cannot be read is a diagnostic, and the rest is compiled all the
// same. The same sources give the same files, whatever their order. No rule is in neither
// half: it has an object, or it is in the remainder, or an error says why.
//
// It translates nothing itself; package compile does.
//
// Start at Compile (compile.go). files.go writes a folder, and carried.go the documents of a hub in it.
package convert
