// Package controlplane runs a real Kubernetes control plane on loopback: etcd,
// kube-apiserver with RBAC and an audit log, and of kube-controller-manager the
// controllers that fill the status of ValidatingAdmissionPolicies, empty deleted
// namespaces and collect garbage. There is no kubelet and no scheduler.
//
// In come Options. Out comes a ControlPlane that answers requests and has its
// admission plugins synced, with kubeconfig files and client configurations for
// an administrator, for a plain user whom RBAC grants nothing, and for whoever
// else is named.
//
// # The binaries
//
// They are built from the modules k8s.io/kubernetes and go.etcd.io/etcd. The folder servers
// has a folder for each version of Kubernetes, with a file mod and a file sum: the go.mod
// and go.sum of a module of its own. They have other names here because the go
// command embeds no file of a nested module, and the package must be able to
// build where the repository is not at hand. The module is written into a folder
// below the user's cache, built there once for each version, under a lock, and
// what was built is renamed into place whole. A first build takes five to eight
// minutes on two cores.
//
// The environment variable KVAP_KUBERNETES says which version runs; the standard one
// where it does not. Of the oldest version the API server alone is built, for the others
// may be newer than it: they are those of the standard version. The environment variable
// KVAP_CONTROLPLANE names a folder of binaries (etcd, kube-apiserver,
// kube-controller-manager) to take instead.
//
// To go to another version: add its folder. Its go.mod has the programs as tools, and
// replaces each module that Kubernetes has in its own repository; go.sum comes of
// `go list -mod=mod -deps` of the programs.
//
// Kubectl is for tests whose scripts call it. Where there is none on the path it is built
// likewise, from kubectl/mod, kubectl/sum and kubectl/main, of which none is a Go file
// to the go command for the same reason.
//
// # Nothing stays behind
//
// What was started ends with the process that started it, in whatever way that
// ends: by Stop, by a panic, by the time limit of go test, by SIGKILL. Three
// things see to it:
//
//   - All processes of a control plane are one process group, whose leader is a
//     watchdog: a shell that waits for the end of its input, a pipe that this
//     process holds open and never writes to. The kernel closes the pipe when
//     this process is gone; then the watchdog ends the group, itself last, and
//     removes the folder of data. While a member of a group lives, its number is
//     given to no other, so nothing foreign can be hit.
//   - On Linux each server is also killed by the kernel when the thread that
//     started it ends. Go moves goroutines between threads, so one goroutine
//     keeps one thread for as long as the control plane lives, and starts all.
//     This covers a watchdog that was killed.
//   - A signal from the terminal does not reach the group: whoever catches it
//     here can use the control plane until Stop.
//
// What must hold: several control planes may run at once; everything listens on
// 127.0.0.1, at ports that were free; tokens and keys are made anew each time.
//
// The package knows nothing of kvap. It runs on Unix only.
//
// Start reading at Start (controlplane.go), then launch.go.
package controlplane
