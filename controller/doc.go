// Package controller keeps a cluster's native policies in step with its Kyverno
// policies.
//
// In come policies, exceptions and ConfigMaps, by watches. Out go
// ValidatingAdmissionPolicies and MutatingAdmissionPolicies, their bindings and params, webhook configurations
// for what has no native form, and a PolicyTranslation for each policy.
//
// # One pass
//
// Every change leads to a pass over all policies, which compares what is wanted
// with what is there and writes the difference. A pass is made of numbered steps;
// a process that ends between any two of them leaves a cluster in which each rule
// is judged by at least one side, and the next pass goes on from there.
//
//  1. Read all policies, exceptions and ConfigMaps from the caches. A policy that
//     does not parse counts as its last good version does.
//  2. Compile, with package compile, and write the params that native rules will read.
//  3. Serve what remains, and what remained before this pass: the Fallback judges by
//     both. A rule that denies and reads a ConfigMap of which there are no params, or none
//     soon, as its namespace is being deleted, remains where there is a webhook: for want of its
//     params an API server would refuse every request for the rule's kinds. The webhook
//     configurations that it asks for are written, the first on whose answer requests depend
//     once API servers were seen to reach the webhook, and every API server is seen to ask by them.
//  4. Write policies, then bindings, that are missing or differ.
//  5. See them enforced: every API server is asked, dry, for a canary that a policy
//     made after them warns about.
//  6. Remove bindings, then policies that are no longer wanted, see that nobody judges
//     by them, and remove their params, for want of which they would deny. What has to stay
//     keeps its params.
//  7. Serve only what remains, and write the narrower webhook configurations; where
//     nothing remains, remove them. A request goes past the native policies and then to the
//     webhook: where a rule was handed over, this waits, for a later pass, as long as an API
//     server waits for the webhook's answer after it was seen to judge by the rule.
//  8. Write the status of each policy.
//
// So a rule that becomes native is enforced (5) before the webhook lets go of it
// (7), and one that ceases to be is served (3) before its object goes (6): where the
// webhook does not serve, the object stays.
//
// Policies that mutate go the same way, where the cluster serves MutatingAdmissionPolicies
// (mutations.go): what says "judge" above says "change" of them. API servers run them before
// any webhook, so that while a rule is handed over both change an object, first the native
// policy: with a Fallback only rules become native that are proven to change nothing more the
// second time. In shadow none does, for a native policy that mutates always has an effect.
//
// What must hold: a pass that finds nothing to do writes nothing. Only objects that
// carry kvap's label and were made by its field manager are changed or removed. An
// object of the same name that is not kvap's stays as it is, and a condition says so.
//
// Of several replicas only the one that was elected makes passes; the others serve
// every rule that a webhook could be asked for, and write nothing. One that loses its lease
// becomes one of the others, and may be elected again: election.go.
//
// It does not judge requests, and it does not know package webhook.
//
// Start at reconcile.go, whose Reconcile is one pass; plan.go decides what to write and in
// which order, and handover.go writes it. fallback.go is what the webhook has to do.
package controller
