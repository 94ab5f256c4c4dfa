// Package endpoint says where a webhook listens, and how API servers find it.
//
// In: an address, and a service or a URL. Out: the names for its certificate, and what a
// webhook configuration says of it.
//
// What must hold: a webhook has a service or a URL, never both, and the certificate has
// the very name that the API server calls it by.
//
// Start at Endpoint (endpoint.go).
package endpoint
