// Package shadow counts what the webhook says of requests about policies in shadow.
//
// In: which policies are in shadow, by Follow, and the webhook's records, by Note. Out,
// by News: for each policy how many requests each rule let pass, found a violation in or
// could not judge, and the last few of them, as the status of a PolicyTranslation has it, once a
// minute at most. The counts are a Prometheus metric too.
//
// What must hold: what it keeps is bounded, whatever comes; of a Secret no message is
// kept, for it may hold a value; a version of a policy begins at nothing. Dry runs
// count for nothing: what they would make is never there.
//
// It writes nothing to a cluster, and says nothing of Kyverno: package migrate/evidence
// holds the two against each other.
//
// Start at Book (book.go).
package shadow
