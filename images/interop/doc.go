// Command interop has cosign, sigstore-go and notation-go sign images, and writes what they leave in
// a registry into OCI layouts, which the tests of package images verify: images/testdata/interop.
//
// In: nothing; out of a registry in memory and keys that live as long as the run. Out: a folder for
// each way to sign, with the layout and, as PEM or JSON, whom to trust.
//
// What must hold: before a layout is written, the program that signed has verified it. Nothing is
// asked over a network but the registry on loopback.
//
// It is a module of its own, since cosign brings some two hundred others. Run it in its folder:
//
//	go run . ../testdata/interop
//
// Start at main.go.
package main
