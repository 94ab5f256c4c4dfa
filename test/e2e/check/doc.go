// Package check tests, on a real control plane, that what kvap check says a cluster
// will write into the status of policies is what it does write.
//
// It has tests only, with the build tag e2e: run them with make e2e. The policies are
// those of the fixtures and of the corpus, where it is at hand, converted; those of
// package check; and a table of expressions with every kind of mistake.
//
// Start at TestStatus (status_test.go); mistakes_test.go is the table.
package check
