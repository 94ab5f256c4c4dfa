// Package registration says what the API server sends to the webhook: the
// ValidatingWebhookConfiguration and the MutatingWebhookConfiguration.
//
// In: the policies that the webhook serves, each with only the rules that have no native form,
// what the cluster serves (Kinds), and Options. Out of Configure: the two configurations, each
// nil where there is nothing to serve, and the problems: kinds that nobody serves, and
// policies that are left out. A policy is left out where its registration could lock the
// cluster up, or where the API server would refuse it, and with it all others (conditions.go).
//
// What must hold: the same input gives the same configurations. The API server sends each
// request that a rule can say anything of; it may send more, because the engine matches again.
// A policy's Route, which is the path of its requests, depends on the policy alone, so the
// server and the configuration agree without asking each other. Nothing that the webhook, or
// the cluster's own machinery, needs to come up goes to a webhook that must answer
// (conditions.go).
//
// The package writes nothing and asks no cluster.
//
// Start at route.go, then objects.go.
package registration
