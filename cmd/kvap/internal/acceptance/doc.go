// Package acceptance says which findings somebody accepts, and why.
//
// In: codes of the command line, a configuration file, and sources, whose objects may have
// an annotation and whose lines a comment:
//
//	annotations: {kvap.dev/ignore: "KV413: another team writes the binding"}
//	# kvap.dev/ignore: KV405: the field is of a fork
//
// Out: the reason for which a finding is accepted, and a warning for what accepts findings
// without a code or a reason.
//
// What must hold: a comment that stands alone is about what follows it, one behind a line
// about that line, both with what is indented below it. Before the first line of a document
// it is about the whole document, as an annotation is.
//
// Start at In and Reason (acceptance.go). configuration.go has the file.
package acceptance
