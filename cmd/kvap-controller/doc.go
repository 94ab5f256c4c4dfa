// Command kvap-controller keeps a cluster's native policies in step with its policies, and runs
// what belongs to a cluster: the webhook, generation, cleanup and reports. It is the program
// of the image.
//
// In: flags, and a cluster by the service account or a kubeconfig file. Out: logs in JSON on
// standard error; what it does is in the cluster.
//
// What must hold: it links nothing that only people at a terminal use, as tests, verification
// and migrations.
//
// It does nothing itself: flags become controller/incluster's options. Start at main.go.
package main
