//go:build unix

package controlplane

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// Who waits for the lock says so, and gets it when the other lets go.
func TestLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	var alone strings.Builder
	first, err := lock(file, &alone)
	if err != nil {
		t.Fatal(err)
	}
	told, progress := io.Pipe()
	got := make(chan error, 1)
	go func() {
		second, err := lock(file, progress)
		if err == nil {
			err = second()
		}
		got <- err
	}()
	said := make([]byte, 1000)
	n, err := told.Read(said) // which is before it waits
	if err != nil || !strings.Contains(string(said[:n]), "waiting for it (it has locked "+file+")") {
		t.Errorf("%s, %v", said[:n], err)
	}
	if len(got) > 0 {
		t.Error("both have the lock")
	}
	if err := first(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil || alone.Len() > 0 {
		t.Errorf("%v; alone it says %q", err, alone.String())
	}
}
