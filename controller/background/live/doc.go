// Package live is the cluster as package background sees it.
//
// In: a client configuration, whose permissions are all that background work can
// reach. Out: a Cluster and Requests, which read and write; Watches, which tell a
// Worker of objects that were generated or copied and of new GenerateRequests; and
// Events, which tell users.
//
// What must hold: no object is read from a cache, so that work sees what it wrote
// before; only which name an object with a UID has is kept. Lists are read by pages, and
// those that are kept as a whole are bounded. Of what is watched only the metadata is read, and only of objects with
// the labels of generated and copied ones.
// A watch that may not be is told, and tried again.
//
// It decides nothing about work.
//
// Start reading at cluster.go.
package live
