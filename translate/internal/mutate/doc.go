// Package mutate lowers mutate rules and MutatingPolicies to MutatingAdmissionPolicies.
//
//	patchStrategicMerge:                           ApplyConfiguration:
//	  metadata:                                    Object{metadata: Object.metadata{
//	    labels: {+(team): web}                       labels: 'team' in … ? {} : {'team': 'web'}}}
//
// In: the mutate rules of a policy, in order, or a MutatingPolicy. Out: drafts of package
// mutating, each with its mutations, or why they are left to the webhook.
//
// What must hold: the object that comes out is the interpreter's, key by key. Each rule sees
// what those before it made. What the API server would refuse when it runs is known from the
// schema and never reaches a cluster.
//
// Rules with targets become drafts of policies that change existing objects, for Kyverno's kinds
// alone: targets.go, and selection.go, which finds what is changed.
//
// Start at rules.go; mergepatch.go reads a merge and mergeapply.go and patchops.go write
// it, jsonpatch.go is patchesJson6902, loop.go foreach, repeatable.go whether a policy
// may run twice. policywalk.go is a MutatingPolicy: policy.go is what is known of it for
// each kind that it matches and what it writes, between.go what the object is between mutations.
package mutate
