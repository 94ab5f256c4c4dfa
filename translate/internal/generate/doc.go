// Package generate lowers generate rules to drafts of package generating.
//
//	generate:                                      generator.Apply(object.metadata.name, [{
//	  apiVersion: v1                                 'apiVersion': 'v1',
//	  kind: ConfigMap                                'kind': 'ConfigMap',
//	  name: team                                     'metadata': {'name': 'team'},
//	  namespace: "{{request.object.metadata.name}}"  'data': {'of': object.metadata.labels.team}
//	  data: {data: {of: "{{…labels.team}}"}}       }])
//
// In: the generate rules of a policy. Out: drafts, or why a rule has none.
//
// What must hold: for a request, the draft's policy makes the objects that the rule makes, or
// nothing, as the rule does: an error makes nothing in both. With synchronize, what is no longer
// a trigger to the rule is none to the policy.
//
// Start at rules.go; target.go is what one rule makes.
package generate
