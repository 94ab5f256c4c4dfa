// Package status holds the tests of `kvap status` on a real control plane; it has
// nothing to import. They run by `make e2e`, for they carry the build tag e2e.
//
// In come policies with a mistake in each part that a cluster can tell of. What must
// hold: the status shows each mistake at its place, and nothing else.
package status
