// Package kyverno runs a real Kyverno beside a control plane of package controlplane: its
// admission controller and its background controller, as processes out of the cluster.
//
// Into Start goes a control plane. Out comes a Kyverno that has registered its webhooks:
// with its definitions, its namespace, its ConfigMaps, and two users who may do what its
// service accounts may and more. It can be killed and started again, and uninstalled.
//
// The programs are built from the module github.com/kyverno/kyverno, of the version that
// module/mod requires, as package controlplane builds Kubernetes: once, under the user's
// cache, with module/mod and module/sum as go.mod and go.sum. A first build takes half an
// hour on two cores, one package at a time, for the linker and the compilers would fill
// the memory otherwise. The definitions are those of the module's folder config/crds, in
// the folder crds beside the programs. The environment variable KVAP_KYVERNO names a
// folder that has all of them (kyverno, background-controller, crds) to take instead.
//
// What must hold: what was started ends with the control plane, however that ends.
//
// Nothing that CI runs needs it: test/standin stands in for Kyverno there.
//
// Start at Start (kyverno.go).
package kyverno
