// Command benchadmission measures what judging Pods costs on a real API server.
//
// In come the fixture pod-security-set, nineteen policies that enforce the Pod
// Security Standards, and the same rules as somebody wrote them by hand
// (handwritten.yaml). Out goes a table, on standard output or, with -update, in
// place of the one in a document for the Kubernetes that runs: for each way of packing the policies, what it adds
// to a request and what it leaves of the server's throughput.
//
// All variants are measured one after the other, on one API server, in several
// rounds; a figure is the median of its rounds, and is compared with the bare
// server of its own round. Requests are dry runs. Their number is fixed, and so is
// the time of each measurement of throughput, so a run is bounded.
//
// With -mutations it measures the same of nineteen policies that change Pods (mutations.yaml),
// once as MutatingAdmissionPolicies and once run by the webhook of kvap-controller, in a
// table of its own. There each answer is looked at: the Pod has what all policies write into it,
// or nothing of it. A variant begins when what was before has been seen to be out of force.
//
// It says nothing of other machines: read the ratios. It is run by make
// bench-admission, not by any test.
//
// Start reading at main.go, then measure.go.
package main
