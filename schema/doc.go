// Package schema knows the types of a cluster: kinds, resources, scope,
// subresources, and the shape of each object.
//
// What comes in: the number of a Kubernetes release, and CustomResourceDefinitions
// as YAML or JSON, or what a cluster serves and its OpenAPI documents. What goes
// out: a Set, which resolves a kind to its Type, a kind pattern to its Resources,
// and a resource back to its kind; and two views of it for the API server's own
// type checker, Resolver and RESTMapper.
//
// WithPublished adds the kinds that popular projects publish, of which nothing is decoded
// until it is asked for. A cluster may serve another release of them: their types have no
// required fields, every object is open, and what is given or served comes first.
//
// What must hold:
//   - A Type says what CEL sees at run time: quantities, times and bytes are
//     strings, as the API server hands them over; Format tells them apart.
//   - A Required field is there, and not null unless its type is Nullable,
//     whenever its parent is there, in what a policy sees: an object that the API server
//     has decoded and validated. For built-in kinds gen/required.go has the rule: what a Go
//     struct always writes, and what validation insists on. For custom resources it is
//     the schema's required list, which the API server enforces. In addition apiVersion,
//     kind and metadata are required at the top of a kind. Mandatory, in contrast, is the
//     bare required list. Missing tells of an object that no API server hands over.
//   - A Default is what the schema of a custom kind says; those of built-in kinds are not here.
//   - Types are shared and may refer to themselves: treat them as read only, and
//     bound any walk.
//   - A Set does not change; WithCRDs and WithServed make a new one. It may be used by several
//     goroutines.
//   - What depends on the order of a map has a stated order instead.
//
// It deliberately does not: talk to a cluster, validate objects, apply defaults,
// or choose among several versions of a kind; callers do.
//
// Start reading at schema.go for the values, then set.go for where they come
// from, definition.go, crd.go and served.go for how a schema becomes a Type,
// missing.go for objects that lack what they must have, resource.go for kinds and resources, published.go for those of projects.
package schema
