// Package cleanup holds the tests of what deletes by policies and by a label, on a
// real control plane; it has nothing to import. They run by `make e2e`, for they carry
// the build tag e2e.
//
// In come cleanup policies and objects, and a clock that the tests set. What must hold:
// what a policy or a label says goes, and nothing else; a policy of a namespace stays
// there; a permission that is missing is said and costs no other policy; in shadow
// nothing goes.
package cleanup
