// Package certs has the certificates of the webhook.
//
// In: the names that the API server calls the webhook by, a clock, and a Store that
// replicas share; or the files of somebody else's certificates. Out: the
// certificate for a TLS handshake, and the bundle of authorities that goes into the
// webhook configurations.
//
// An Authority is one of our own. What must hold while it rotates:
//   - A new authority signs nothing before it has been in the bundle for as long as
//     the API servers may take to see it (overlap), and not before the caller knows
//     that they were told (Known), unless the old one has ended. An old one stays in
//     the bundle until nothing that it has signed is valid.
//   - So at every moment each certificate that a replica shows is signed by an
//     authority in each bundle that an API server may hold.
//   - Several replicas write one record with optimistic concurrency; whoever loses
//     takes what the other wrote.
//   - Time comes from the caller's clock.
//
// Files are read again when they change, as cert-manager and others write them.
//
// The package knows nothing of Kubernetes: a Secret is a Store, which the caller
// brings.
//
// Start reading at authority.go; record.go is what is stored.
package certs
