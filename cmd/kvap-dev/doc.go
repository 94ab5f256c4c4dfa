// Command kvap-dev runs a control plane on this machine, with the controller and policies,
// and Kyverno or what stands in for it where that is asked for. It is a program of its own,
// for it links what downloads, builds and starts Kubernetes.
//
// In: paths of policies, and flags: what runs, and definitions. Out: nothing but what is
// printed, until it is told to end.
//
// What must hold: all of it ends with the process, and leaves nothing behind but a folder
// that was named. The controller is another user than the one at the terminal, for what
// it does itself triggers no rule. What stands in for Kyverno looks to the cluster as
// Kyverno does (package test/standin), and judges as the interpreter does.
//
// Start at main.go, then start (dev.go).
package main
