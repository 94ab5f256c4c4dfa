// Package controller keeps a cluster's native policies in step with its Kyverno
// policies.
//
// It watches policies, exceptions and ConfigMaps. It writes ValidatingAdmissionPolicies and
// MutatingAdmissionPolicies, their bindings and params, webhook configurations for the rules
// that have no native form, and a PolicyTranslation for each policy.
//
// # One pass
//
// Every change leads to a pass over all policies, which compares what is wanted with what is
// there and writes the difference. A pass is made of numbered steps. A process may end
// between any two of them: at least one side judges by each rule then, and the next pass
// goes on from what is in the cluster.
//
//  1. Read all policies, exceptions and ConfigMaps from the caches. A policy that does not
//     parse counts as its last good version does.
//  2. Compile, with package compile, and write the params that native rules will read. A
//     rule that denies, and reads a ConfigMap of which there are no params, remains for the
//     webhook, if there is one: an API server would refuse every request for the rule's kinds.
//     The same holds where the params go soon, because their namespace is being deleted.
//  3. Serve what remains, and what remained before this pass: the Fallback judges by both.
//     Write the webhook configurations that it asks for. The first one on whose answer
//     requests depend comes after every API server has been seen to reach the webhook. Then
//     see that every API server asks by the configurations.
//  4. Write policies, then bindings, that are missing or differ.
//  5. See them enforced: ask every API server, with a dry run, for a canary that a policy
//     written after them warns about.
//  6. Remove bindings, then policies, that nobody wants any more. See that no API server
//     judges by them, and remove their params: without params they would deny. A policy that
//     has to stay keeps its params.
//  7. Serve only what remains, and write the narrower webhook configurations; remove them
//     where nothing remains. A request passes the native policies first and the webhook
//     later. So after a rule was handed over, this step waits as long as an API server waits
//     for the webhook's answer, for a later pass.
//  8. Write the status of each policy. One that was edited is marked before, and beside the
//     passes, as soon as that is heard of (edited.go).
//
// So API servers enforce a rule that becomes native (5) before the webhook lets go of it (7),
// and the webhook serves a rule that ceases to be native (3) before its object goes (6). Where
// the webhook does not serve, the object stays.
//
// Policies that mutate go the same way, where the cluster serves MutatingAdmissionPolicies
// (compiler.go): read "change" for "judge" above. API servers run them before any webhook, so
// while a rule is handed over both change an object, the native policy first. With a Fallback,
// therefore, only those rules become native that are proven to change nothing more the second
// time. In shadow none does, because a native policy that mutates always has an effect.
//
// What must hold: a pass that finds nothing to do writes nothing. The controller changes and
// removes only objects that carry kvap's label and that its field manager made. It leaves an
// object of the same name that somebody else made as it is, and a condition says so.
//
// Of several replicas only the leader makes passes. The others serve every rule that a webhook
// could be asked for, and write nothing. A leader that loses its lease becomes one of the
// others, and may be elected again (election.go).
//
// The package does not judge requests, and it does not know package webhook.
//
// Start at reconcile.go, whose Reconcile is one pass; plan.go decides what to write and in
// which order, and handover.go writes it. fallback.go is what the webhook has to do.
package controller
