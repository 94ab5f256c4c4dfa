// Package folder writes the files of a run into a folder, and keeps what is not its own.
//
// In: the name of a folder, the sources of the run, and files by name. Out: the files,
// and an index of them with their hashes, by which a later run knows what it may replace
// and remove.
//
// What must hold: nothing is written outside of the folder. A file of somebody else, or
// one that was changed since, or that is among the sources, is replaced only when that is
// asked for, and never removed. Wherever a run ends, the index is true.
//
// Start at Folder (folder.go).
package folder
