// Package cluster reads an API server for the verbs of the command line.
//
// In: a client configuration. Out: a Connection, which knows what is served, and lists
// objects of a kind by pages, whatever version of it is served.
//
// What must hold: what may not be read is told to the caller, and never taken for
// nothing.
//
// It writes nothing, and keeps nothing of what it reads.
//
// Start at Connect (connection.go).
package cluster
