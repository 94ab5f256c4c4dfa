// Package background holds the tests of background work on a real control plane; it
// has nothing to import. They run by `make e2e`, for they carry the build tag e2e.
//
// `kvap-controller` runs as a process of its own, as a user of its own; what comes in
// are policies, and requests of users. What rules generate must be there, follow its
// trigger and its source, be repaired, and go as the policy says; and nothing that a
// request has started may be lost when the process is killed. Policies of the CEL kinds, of
// which some are judged by the API server and some deleted by schedule, are killed at each
// step here too (killed_test.go).
//
// Start reading at generate_test.go.
package background
