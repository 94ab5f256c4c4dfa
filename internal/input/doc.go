// Package input reads what users name on the command line: files, folders, standard
// input, kustomize folders, and logs that grow.
//
// In: paths as they were typed, and standard input. Out: Sources, the text of each file
// with the names by which people know it; the objects in files (Manifests); and lines
// with their places (Tail).
//
// What must hold: the same paths give the same sources in the same order, and a file that
// is named twice is read once. A path that is not there ends the run; a file of a folder
// that cannot be read is a diagnostic, and the others are read all the same. No more is
// read of a file than SizeLimit, of a line than 32 MiB.
//
// It knows nothing of policies.
//
// Start at Read (input.go).
package input
