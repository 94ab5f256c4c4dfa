// Package live carries moves of policies out in a cluster, and reads what they go by.
//
// In: a connection, and a goal of package migrate. Out: the states of all policies, as
// the cluster has them at a moment; a Handover, which makes one move after another until
// each policy is where it should be or has been left; and what is left of Kyverno.
//
// What must hold: nothing is decided here but what was seen: that Kyverno judges, by its
// webhook configurations, its lease and its status; that native policies do, by the
// objects that are there and not by what somebody said of them once. Each move is made
// only if its object is still as it was read, and what was read is read anew after it.
//
// It does not say what the next move is.
//
// Start at Reader (reader.go), then Handover (handover.go) and Finish (finish.go).
package live
