// Package schema knows the types of a cluster: kinds, resources, scope,
// subresources, and the shape of each object.
//
// What comes in: the number of a Kubernetes release, and CustomResourceDefinitions
// as YAML or JSON, or what a cluster serves and its OpenAPI documents. What goes
// out: a Set, which resolves a kind to its Type, a kind pattern to its Resources,
// and a resource back to its kind; and two views of it for the API server's own
// type checker, Resolver and RESTMapper.
//
// What must hold:
//   - A Type says what CEL sees at run time: quantities, times and bytes are
//     strings, as the API server hands them over; Format tells them apart.
//   - A Required field is there, and not null unless its type is Nullable,
//     whenever its parent is there. For built-in kinds these are few fields, such
//     as containers, template and the names of list items: gen/required.go has the
//     rule. For custom resources it is the schema's required list, which the API
//     server enforces. In addition apiVersion, kind and metadata are required at
//     the top of a kind. Mandatory, in contrast, is the bare required list.
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
// resource.go for kinds and resources.
package schema
