package input

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/kvap/kvap/diag"
)

// A log is read on where it was rotated between two looks: its rest, the logs that were
// rotated after it, and the new one, each line once.
func TestRotatedLog(t *testing.T) {
	for name, one := range map[string]struct {
		rotate func(t *testing.T, dir string)
		want   []string
		lost   bool
	}{
		"it grows": {func(t *testing.T, dir string) { write(t, dir, "audit.log", "a\nb\nc\n") }, []string{"a", "b", "c"}, false},
		"once": {func(t *testing.T, dir string) {
			write(t, dir, "audit.log", "a\nb\nc\n")
			rename(t, dir, "audit.log", "audit-2026-01-02T00-00-00.000.log")
			write(t, dir, "audit.log", "d\n")
		}, []string{"a", "b", "c", "d"}, false},
		"twice, beside an older one": {func(t *testing.T, dir string) {
			write(t, dir, "audit-2026-01-01T00-00-00.000.log", "old\n")
			rename(t, dir, "audit.log", "audit-2026-01-02T00-00-00.000.log")
			write(t, dir, "audit-2026-01-03T00-00-00.000.log", "b\n")
			write(t, dir, "audit.log", "c and more than before\n")
		}, []string{"a", "b", "c and more than before"}, false},
		"and removed": {func(t *testing.T, dir string) {
			rename(t, dir, "audit.log", "elsewhere")
			write(t, dir, "audit.log", "b\n")
		}, []string{"a", "b"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "audit.log", "a\n")
			log, err := NewTail([]string{filepath.Join(dir, "audit.log")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			lost := false
			log.Lost = func(string) { lost = true }
			var got []string
			look := func() {
				err := log.Each(false, func(line []byte, _ diag.Pos) bool { got = append(got, string(line)); return true })
				if err != nil {
					t.Fatal(err)
				}
			}
			look()
			one.rotate(t, dir)
			look()
			look()
			if !slices.Equal(got, one.want) || lost != one.lost {
				t.Errorf("read %q, want %q; lost: %t", got, one.want, lost)
			}
		})
	}
}

// What is there at first may be passed over, and so is a line that is too long, whole or not.
func TestTailFromTheEnd(t *testing.T) {
	dir := t.TempDir()
	log, err := NewTail([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	long := 0
	log.Longest, log.Long = 8, func(string) { long++ }
	var got []string
	look := func(text string) {
		write(t, dir, "audit.log", text)
		if err := log.Each(false, func(line []byte, _ diag.Pos) bool { got = append(got, string(line)); return true }); err != nil {
			t.Fatal(err)
		}
	}
	write(t, dir, "audit.log", "before\n")
	if err := log.ToEnd(); err != nil {
		t.Fatal(err)
	}
	look("before\na\nmuch too long")
	look("before\na\nmuch too long\nb\n")
	look("c\n") // it was emptied
	if want := []string{"a", "b", "c"}; !slices.Equal(got, want) || long != 1 {
		t.Errorf("read %q, want %q; %d long lines", got, want, long)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
		t.Fatal(err)
	}
}
