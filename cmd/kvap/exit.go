package main

import (
	"errors"
	"fmt"
)

// The exit codes. The output format never changes them.
const (
	exitClean    = 0
	exitFindings = 1 // violations, disagreement, a remainder under --strict
	exitUsage    = 2 // usage, or input that cannot be read
	exitRuntime  = 3 // what the user did not cause: a disk, a cluster
	exitPartly   = 4 // some of the input was left out
)

// An exit ends a command with a code of its own. Any other error of a command is
// one of usage. err may be nil where everything has been said.
type exit struct {
	code int
	err  error
}

// Error is the message, if there is one.
func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap is the cause.
func (e *exit) Unwrap() error { return e.err }

// runtimeError is the end by an error that has no exit code of its own.
func runtimeError(err error) error {
	if own := (*exit)(nil); errors.As(err, &own) {
		return own
	}
	return &exit{exitRuntime, err}
}
