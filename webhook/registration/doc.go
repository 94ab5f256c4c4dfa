// Package registration says what the API server sends to the webhook: the
// ValidatingWebhookConfiguration and the MutatingWebhookConfiguration.
//
// In: the policies that the webhook serves, each with only the rules that have no
// native form, what the cluster serves (Kinds), and Options. Out of Objects: the
// two configurations, each nil where there is nothing to serve, and the problems:
// kinds that nobody serves, and policies that are left out because their
// registration could lock the cluster up, or because the API server would refuse it
// and with it that of all others (acceptable.go).
//
// What must hold: the same input gives the same objects. Each request that a rule
// can say anything of is sent; more may be sent, for the engine matches again. A
// policy's Place, which is the path of its requests, depends on the policy alone,
// so that the server and the configuration agree without asking each other.
// Nothing that the webhook, or the cluster's own machinery, needs to come up is
// sent to a webhook that must answer (deadlock.go).
//
// It writes nothing and asks no cluster.
//
// Start reading at route.go, then objects.go.
package registration
