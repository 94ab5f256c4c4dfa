// Package images proves who signed a container image, and what was attested of it.
//
// In: an image that is pinned by its digest, an Attestor (a key, certificates or an identity,
// the annotations that a signature must have, whether a log must know of it), a Trust and a
// Registry.
// Out: nil or the error that says why nothing proves it; of attestations, the in-toto
// statements that are proven.
//
//	cosign sign --key k1 ghcr.io/acme/web@sha256:…     the tag sha256-….sig, a layer for
//	                                                   each signature
//	cosign attest --key k1 --type slsaprovenance …     the tag sha256-….att, a layer for
//	                                                   each envelope
//	cosign sign --new-bundle-format …                  a bundle that refers to the image
//	notation sign ghcr.io/acme/web@sha256:…            an envelope that refers to the image
//
// What must hold:
//   - A signature counts for the digest that its own payload names, and for no other;
//     key, annotations and log are those of one signature, not of several.
//   - Nothing that a registry says is believed but for what is signed: each blob is read
//     to its end and has the digest that its manifest names. What is too large or too
//     much is an error before memory is spent on it.
//   - A registry that cannot be asked, or that fails, is ErrUnreachable; one that has no
//     signature is not.
//   - A connection goes to no address of this machine or of its link, and without TLS
//     nowhere, unless the Registry says so.
//
// It knows nothing of policies: which images, how many attestors, and what follows from
// an error are for others. It keeps nothing between calls.
//
// What logs, logs of certificates and trusted roots prove is sigstore-go's to say, what an envelope of
// Notary proves notation-core-go's, timestamps tspclient-go's, and a TUF repository go-tuf's. They are
// asked in parts, since they take things for true that are not here: see signed.go.
//
// Start at attestor.go; then signature.go and attestation.go, bundle.go for the same in
// another form, log.go and signed.go for what a log proves, entry.go for its entries that
// sigstore-go does not know, notation.go for signatures of Notary, recorded.go for registries in a folder,
// keyless.go and trust.go for certificates of some minutes, trustfile.go and mirror.go for where
// a trusted root is from, timestamp.go for who says when, and
// registry.go for what is asked over the network.
package images
