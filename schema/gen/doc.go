// Command gen writes the embedded schema sets of package schema.
//
// What comes in: the newest patch of each Kubernetes minor that the module
// proxy has, as the modules k8s.io/kubernetes (its api/openapi-spec/swagger.json)
// and k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator
// (their Go types). What goes out: data/<minor>.json.gz, one per minor: a first
// line with the resources, then one line per definition, sorted by name, without
// descriptions.
//
// What must hold: the same modules give the same bytes. Beside required, which
// is the OpenAPI's, a definition has the list always: what is there in every
// object, so that CEL needs no has(); and the list empty: what may be there with nothing
// in it. required.go has the rules.
//
// It does not: choose versions by itself (releases.go lists them), or run in
// any build; only go generate in package schema runs it.
//
// Start reading at main.go.
package main
