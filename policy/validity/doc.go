// Package validity says what is wrong with a policy when it is written, before any request
// comes: what Kyverno refuses when a policy is created or updated, and what it warns of.
//
// In: policies, exceptions and cleanup policies as package policy has read them, and what is
// known of kinds. Out of Check: diagnostics about each by itself. An error is a refusal. Out of
// Change: those about a policy that takes the place of another one.
//
// What must hold: what Kyverno takes is never refused. What reading has said already is not
// said again: an error of package policy is a refusal too.
//
// It does not know who writes the policy, and asks no cluster: package incluster asks it for a
// webhook, and the verb check for files.
//
// Start at Check (validity.go).
package validity
