package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// A folder is what a run writes its files into. Nothing is written outside of it:
// names that lead out, and links that do, are errors.
type folder struct {
	name string
	root *os.Root
}

// openFolder makes the folder where it does not exist.
func openFolder(name string) (*folder, error) {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, plainPathError(err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, plainPathError(err)
	}
	return &folder{name, root}, nil
}

// write writes a file, whose name has slashes on every system.
func (f *folder) write(name string, data []byte) error {
	err := f.root.MkdirAll(path.Dir(name), 0o755)
	if err == nil {
		err = f.root.WriteFile(name, data, 0o644)
	}
	return f.blame(name, err)
}

// blame names the file as the user knows it.
func (f *folder) blame(name string, err error) error {
	if err == nil {
		return nil
	}
	for p := (*fs.PathError)(nil); errors.As(err, &p); {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", path.Join(f.name, name), err)
}

func (f *folder) close() { _ = f.root.Close() } // nothing is buffered
