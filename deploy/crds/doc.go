// Package crds has the CustomResourceDefinitions of kvap's kinds, for those who
// install them from the program.
//
// Out come the bytes of the files of this folder, which `make generate` writes from
// api/v1alpha1. It does not talk to a cluster.
//
// Start at All (crds.go).
package crds
