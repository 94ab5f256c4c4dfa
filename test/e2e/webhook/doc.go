// Package webhook holds the tests of the embedded webhook on a real control plane;
// it has nothing to import. They run by `make e2e`, for they carry the build tag
// e2e.
//
// `kvap-controller` runs as a process of its own, out of the cluster, with its
// webhook on loopback; what comes in are policies, and requests of users. Three
// things must hold: rules that have no native form deny and change what they
// should; while policies change, no request goes unjudged; and when the process
// is killed, the failure policies decide and nothing else.
//
// Start reading at cluster_test.go, then judge_test.go.
package webhook
