// Package signers says what is wrong with who must have signed images, as policies name them, before
// an image is judged by it.
//
// In: a policy, and the time. Out: findings, each with a code and a place: keys and certificates that
// cannot be read, that have ended or will soon; identities that many have; whom the trusted root
// decides about; keys that only the cluster has.
//
// What must hold: a text is read by package images, as when an image is judged. Nothing is asked:
// what a variable, an expression or a Secret says is not known here.
//
// Start at Check.
package signers
