// Package world is what rules look up while a request is judged: the cluster, with
// its roles and namespaces, services, registries, names and time.
//
// In: a client configuration, whose permissions are all that rules can reach, and
// Options that bound it. Out: a World, as package interp asks it, what is bound to
// a user, and what the cluster serves.
//
// What must hold:
//   - Nothing is asked that nobody allowed: services and registries are denied
//     unless a list names them, also behind a redirect, and no path of the API
//     server leads into a pod or another connection.
//   - Each answer is bounded in size and time.
//   - What is served from a cache has the form that the API server would give it. A
//     call is served from a cache only where it is a plain get or list that was made
//     before; what the cache lacks is asked for.
//   - What rules read of the resources that they are about has all that was written before
//     they asked (asof.go). A watch cannot promise that. A cheap question for the version of a
//     list would not tell how late it is, because that version is of all that etcd has: a watch
//     of a list that nobody changes hears of it a minute later. So the API server is asked,
//     once at a time for each path, and all who ask meanwhile share the next answer.
//   - Caches are bounded in number and size. What is not used for long is let go.
//
// It judges nothing, and knows nothing of policies.
//
// Start reading at world.go; api.go, watch.go and asof.go are the cluster, then one file
// for each thing that can be asked.
package world
