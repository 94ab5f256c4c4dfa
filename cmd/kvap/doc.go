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
// It translates, judges and renders nothing itself: each file is one verb, or one
// step that verbs share, and turns flags into calls of the packages beside it.
//
// Start at main.go, then convert.go; testdata/script holds a script for each
// promise of the command line.
package main
