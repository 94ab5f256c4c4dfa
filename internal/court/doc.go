// Package court puts requests before two judges: the native translation of the
// policies, judged by the API server's own code, and the reference interpreter.
//
// In come policies, exceptions and the objects that rules look up; then requests.
// Out comes, for each request, an opinion for every rule as Kyverno reports it:
// what either judge says.
//
// What must hold: the policies are compiled once. Both judges see the same
// request, whose objects of built-in kinds are in the form that the API server
// gives them. Namespaces are not excluded: that belongs to a cluster, not to a rule.
//
// It does not fill in what an API server would default, and it decides nothing on
// the opinions.
//
// Start at New (court.go), then Hear (hear.go).
package court
