package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Files are JSON Lines in a folder, which together never take more than their size.
// The oldest file goes when a line would not fit. They are written by one goroutine.
type Files struct {
	dir      string
	limit    int64 // of all
	part     int64 // of one
	there    []part
	total    int64
	current  *os.File
	last     int
	occupied int64 // by the current one
}

// A part is a file that is full.
type part struct {
	path string
	size int64
}

// parts is into how many files the size is divided.
const parts = 8

// Smallest is the least size that Files may have: an object with what it was before,
// as large as an API server takes them, has its place in half of it.
const Smallest = 16 << 20

// ErrTooLarge is for a line that does not fit.
var ErrTooLarge = errors.New("the request is too large to be recorded")

// OpenFiles makes the folder, if need be. Files that an earlier run left there count,
// and go first.
func OpenFiles(dir string, limit int64) (*Files, error) {
	if limit < Smallest {
		return nil, fmt.Errorf("a size of %d bytes is too small; %d MiB is the least", limit, Smallest>>20)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f := &Files{dir: dir, limit: limit, part: limit / parts}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		n := 0
		if _, err := fmt.Sscanf(e.Name(), "requests-%d.jsonl", &n); err != nil || name(n) != e.Name() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		f.there = append(f.there, part{filepath.Join(dir, e.Name()), info.Size()})
		f.total += info.Size()
		f.last = max(f.last, n)
	}
	return f, f.makeRoom(0)
}

// name is that of a file. It sorts as it was made.
func name(n int) string { return fmt.Sprintf("requests-%08d.jsonl", n) }

// Write adds a line, which must have an end.
func (f *Files) Write(line []byte) error {
	size := int64(len(line))
	if size > f.limit/2 {
		return ErrTooLarge
	}
	if f.current == nil || f.occupied > 0 && f.occupied+size > f.part {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	if err := f.makeRoom(size); err != nil {
		return err
	}
	n, err := f.current.Write(line)
	f.occupied += int64(n)
	f.total += int64(n)
	if err == nil {
		return nil
	}
	if n > 0 { // half a line would spoil the next one
		if cut := f.current.Truncate(f.occupied - int64(n)); cut == nil {
			f.occupied -= int64(n)
			f.total -= int64(n)
		}
	}
	return err
}

// makeRoom removes the oldest files until so much more fits.
func (f *Files) makeRoom(size int64) error {
	for f.total+size > f.limit && len(f.there) > 0 {
		if err := os.Remove(f.there[0].path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		f.total -= f.there[0].size
		f.there = slices.Delete(f.there, 0, 1)
	}
	return nil
}

func (f *Files) rotate() error {
	if f.current != nil {
		f.there = append(f.there, part{f.current.Name(), f.occupied})
		if err := f.current.Close(); err != nil {
			return err
		}
		f.current = nil
	}
	next, err := os.OpenFile(filepath.Join(f.dir, name(f.last+1)), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	f.last++
	f.current, f.occupied = next, 0
	return nil
}

// Size is what the files take.
func (f *Files) Size() int64 { return f.total }

// Close ends the last file.
func (f *Files) Close() error {
	if f.current == nil {
		return nil
	}
	err := errors.Join(f.current.Sync(), f.current.Close())
	f.current = nil
	return err
}
