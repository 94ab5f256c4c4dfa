// Package record holds the tests of the evidence of a migration on a real control
// plane; it has nothing to import. They run by `make e2e`, for they carry the build tag
// e2e.
//
// `kvap migrate record` and `kvap migrate compare` run as processes of their own. What
// must hold: the recorder takes down each request of a stream of two hundred a second,
// no Secret gets into its files, it leaves nothing behind, and nobody is refused when it
// is killed; compare finds no difference between a rule and its translation from any
// source that a cluster has, and finds it where somebody has broken the translation.
//
// Start reading at cluster_test.go, then record_test.go.
package record
