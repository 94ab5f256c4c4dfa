// Package e2e holds the tests that need a real Kubernetes control plane; it has
// nothing to import. They run by `make e2e`, for they carry the build tag e2e.
//
// In come the fixtures, and the corpus of public policies where it is at hand, as
// `kvap convert` makes objects of them for the release of the API server. Three things must hold: the API server
// takes every object; its type checker has nothing to say of an expression that
// kvap wrote; and requests are denied and admitted as the fixtures' cases say, and
// as the judge of package vap/apiserver says in process. The last holds as well of what the
// controller makes of the fixtures that deny.
//
// What a case asks for cannot always be made on a real server: it refuses objects
// that are invalid, and fills in defaults. Such cases are counted and listed with
// the reason, and there is a floor under the number of those that ran. The tests hold for the
// oldest release too (`make e2e-oldest`), where those of MutatingAdmissionPolicies are left out.
//
// Start reading at cluster_test.go, then accept_test.go.
package e2e
