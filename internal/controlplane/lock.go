//go:build unix

package controlplane

import (
	"os"
	"syscall"
)

// lock waits until no other process builds. The kernel lifts the lock when the
// process that holds it ends.
func lock(file string) (unlock func() error, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	return f.Close, nil
}
