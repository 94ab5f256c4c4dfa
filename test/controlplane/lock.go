//go:build unix

package controlplane

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// lock waits until no other process builds, and says so. The kernel lifts the lock when
// the process that holds it ends.
func lock(file string, progress io.Writer) (unlock func() error, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintf(progress, "another process builds programs; waiting for it (it has locked %s)\n", file)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}
