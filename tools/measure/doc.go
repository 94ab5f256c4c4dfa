// Command measure says what the core is used for: docs/core.md.
//
// "reach" builds package lower with coverage, has it compile policies, and counts what of
// translate and cel runs: for public policies, for those that organisations keep in their own
// repositories, for the policies of Kyverno's tests, and for the fixtures. A function that only
// the project's own tests reach is one that nobody needs yet.
//
// "worth" builds package lower once for each mechanism that shortens expressions, without
// it, and counts how many expressions come out otherwise, and how much longer. It reads
// worth.txt: a function in a line, and what its body is where it does nothing. A mechanism
// without worth can go.
//
// In: the corpus beside the repository. Out: tables. It changes no source: where a mechanism
// is off, the go command is given another text of its file.
//
// Start at main.go.
package main
