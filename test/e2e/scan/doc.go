// Package scan holds the tests of reports about objects that are there, on a real
// control plane; it has nothing to import. They run by `make e2e`, for they carry the
// build tag e2e.
//
// In come policies and objects in any order. What must hold: each object that
// violates has one report, which follows policies and objects, and what has not
// changed is not written again.
package scan
