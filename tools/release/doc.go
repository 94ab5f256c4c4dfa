// Release makes what a release of kvap is, from one commit and in one place.
//
// In: the repository, with the version at the top of CHANGELOG.md. Out, in a folder: an archive for
// each platform, with manual pages and completion; an SBOM (SPDX) for each; checksums; the
// images of kvap and kvap-controller as OCI layouts; a manifest for krew and a formula for Homebrew, by these checksums.
//
// What must hold: the same commit, Go and base image give the same bytes; what is built is what is
// committed, and says the version; nothing is published but by -push, and that is the images.
//
// It does not tag the commit, nor upload archives. Start at main.go.
package main
