// Package status reads the health of policies from the objects of a cluster.
//
// In come ValidatingAdmissionPolicies with their status, bindings, what was found
// of their params, and the source policies where the cluster has them. Out comes a
// report.Status: for each policy its conditions and, for each rule, where it is
// judged, by which objects, with which params, and what the cluster's type checker
// says of it, at the place in the source; and the policies that are not kvap's.
//
// What must hold: nothing is claimed that the objects do not show, so a condition
// of which they say nothing is Unknown. A warning is called a known false alarm
// only where the types that the API server publishes yield it and the types that
// values have at run time do not. The order is that of namespaces and names,
// whatever the order of the input.
//
// It does not talk to a cluster, and it has no clock: the caller reads, and says
// what time it is. What rules would become is compile's to say.
//
// Start at Of (status.go), then native.go.
package status
