// Package controller tests package controller on a real control plane, with real
// requests: `make e2e`, with the build tag e2e.
//
// Start at cluster_test.go.
package controller
