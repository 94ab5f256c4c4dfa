// Package incluster is what runs in a cluster: the controller, the webhook for rules that
// have no native form, the work that requests start, and what deletes objects on a
// schedule, in one process.
//
// In: a client configuration and Options. Out: nothing but what these write to the
// cluster, until the context ends or one of them fails.
//
// What must hold: all end when one does. The policies that the webhook answers for are set
// before a configuration has API servers ask about them. What requests start is kept by
// each replica and carried out by the one that leads. Events are bounded, and nobody waits for one.
//
// Each part is a package of its own; this one gives them to each other. The webhook is
// the controller's Fallback (fallback.go); beside it are its certificates in a Secret
// (secret.go), what it says in shadow (fallback.go) and background work (background.go).
// What the parts decide becomes Events (events.go, verdicts.go), also what API servers decide
// natively, as one's log has it (auditlog.go); natively.go judges again what these let in.
//
// Start at Run (server.go).
package incluster
