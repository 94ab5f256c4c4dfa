// Package deploy holds the tests of what is installed, on a real control plane; it
// has nothing to import. They run by `make e2e`, for they carry the build tag e2e.
//
// In comes what the chart renders to. Three things must hold: the API server takes
// every object; the controller, run with the arguments of the Deployment as its
// service account, does all that it is for; and of what its roles grant it is
// refused nothing and leaves nothing unused.
//
// Start reading at account_test.go.
package deploy
