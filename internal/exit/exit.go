package exit

import (
	"errors"
	"fmt"
)

// The exit codes.
const (
	CodeClean    = 0
	CodeFindings = 1 // violations, disagreement, a remainder under --strict
	CodeUsage    = 2 // usage, or input that cannot be read
	CodeRuntime  = 3 // what the user did not cause: a disk, a cluster
	CodePartly   = 4 // some of the input was left out
)

// An Error ends a command with a code of its own. Err is nil where everything has been
// said.
type Error struct {
	Code int
	Err  error
}

// Error is the message, if there is one.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Findings ends a run that found what it looked for.
func Findings(err error) error { return &Error{CodeFindings, err} }

// Usage ends a run that was asked for what cannot be done.
func Usage(err error) error { return &Error{CodeUsage, err} }

// Partly ends a run that left something out.
func Partly(err error) error { return &Error{CodePartly, err} }

// Runtime is the end by an error that has no exit code of its own; nil where there is none.
func Runtime(err error) error {
	if own := (*Error)(nil); err == nil || errors.As(err, &own) {
		return err
	}
	return &Error{CodeRuntime, err}
}
