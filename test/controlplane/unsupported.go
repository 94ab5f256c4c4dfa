//go:build !unix

package controlplane

import (
	"errors"
	"io"
)

// A launcher starts nothing where there are no process groups.
type launcher struct{}

var errUnsupported = errors.New("a control plane runs on Unix only")

func newLauncher(string, bool) (*launcher, error) { return nil, errUnsupported }

func (*launcher) start(string, string, string, []string, ...string) error { return errUnsupported }

func (*launcher) ended(string) <-chan struct{} { return nil }

func (*launcher) kill(string) error { return errUnsupported }

func (*launcher) stop() {}

func lock(string, io.Writer) (func() error, error) { return nil, errUnsupported }
