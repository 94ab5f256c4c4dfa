// Command kvap turns Kyverno-style policies into native Kubernetes
// ValidatingAdmissionPolicies.
//
// In come flags, files, folders and standard input; out go objects on standard
// output or in a folder, everything that is for people on standard error, and an
// exit code: 0 clean, 1 findings, 2 usage or unreadable input, 3 a runtime error,
// 4 partly done.
//
// What must hold: the same input gives the same bytes; the output format never
// changes the exit code; nothing is read from a network but by verbs that are about
// a cluster; commands are built by functions, and there is no state outside of them.
//
// It reads, translates, judges and renders nothing itself: each file is a verb, which
// turns flags into calls of the packages beside it. What verbs share is in flags.go (the
// flags that mean the same for each, and which cluster is meant) and view.go (how what a run says
// is shown); internal/exit has the exit codes.
//
// Start at main.go, then convert.go; testdata/script holds a script for each
// promise of the command line.
package main
