// Package testregistry is a container registry in memory, for tests, and those who sign what is
// in it as cosign does: by layers of images under the tags sha256-….sig and sha256-….att.
//
// In: what tests push, sign and attest. Out: a registry over HTTP on loopback, which may be
// made to answer otherwise.
//
// What must hold: it shares no code with package images, which verifies what is signed here.
//
// Start at New; signer.go has those who sign.
package testregistry
