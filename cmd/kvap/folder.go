package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// A folder is what a run writes its files into. Nothing is written outside of it:
// names that lead out, and links that do, are errors.
//
// It knows what it wrote: indexName lists its files with their hashes, in the form
// of sha256sum. So a later run can tell its own files from those of others, and
// from those that were changed since.
type folder struct {
	name    string
	root    *os.Root
	written map[string]string // hashes by name
	earlier map[string]string // what earlier runs wrote
}

const indexName = ".kvap-files"

// openFolder makes the folder where it does not exist.
func openFolder(name string) (*folder, error) {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, plainPathError(err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, plainPathError(err)
	}
	f := &folder{name: name, root: root, written: map[string]string{}, earlier: map[string]string{}}
	index, err := root.ReadFile(indexName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, f.blame(indexName, err)
	}
	for line := range strings.Lines(string(index)) {
		if hash, file, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "  "); ok {
			f.earlier[file] = hash
		}
	}
	return f, nil
}

// write writes a file, whose name has slashes on every system.
func (f *folder) write(name string, data []byte) error {
	err := f.root.MkdirAll(path.Dir(name), 0o755)
	if err == nil {
		err = f.root.WriteFile(name, data, 0o644)
	}
	f.written[name] = hashOf(data)
	return f.blame(name, err)
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// prune removes what earlier runs wrote and this one did not. What was changed since
// is no longer theirs, and stays.
func (f *folder) prune() (removed int, kept []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(f.earlier)) {
		if f.written[name] != "" {
			continue
		}
		data, err := f.root.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return removed, kept, f.blame(name, err)
		case hashOf(data) != f.earlier[name]:
			kept = append(kept, path.Join(f.name, name))
		default:
			if err := f.root.Remove(name); err != nil {
				return removed, kept, f.blame(name, err)
			}
			removed++
		}
		delete(f.earlier, name)
	}
	return removed, kept, nil
}

// finish writes the index: what this run wrote, and what earlier ones did.
func (f *folder) finish() error {
	all := maps.Clone(f.earlier)
	maps.Copy(all, f.written)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.WriteString(all[name] + "  " + name + "\n")
	}
	return f.blame(indexName, f.root.WriteFile(indexName, []byte(b.String()), 0o644))
}

// blame names the file as the user knows it.
func (f *folder) blame(name string, err error) error {
	if err == nil {
		return nil
	}
	if link := f.link(name); link != "" && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s is a link that leads out of the folder, and nothing is written there; remove it, or name another folder", path.Join(f.name, link))
	}
	for p := (*fs.PathError)(nil); errors.As(err, &p); {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", path.Join(f.name, name), err)
}

// link is the first part of a file's path that is a link, empty where none is.
func (f *folder) link(name string) string {
	for end := 0; end < len(name); end++ {
		if end += strings.IndexByte(name[end:]+"/", '/'); end > len(name) {
			break
		}
		if info, err := f.root.Lstat(name[:end]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return name[:end]
		}
	}
	return ""
}

func (f *folder) close() { _ = f.root.Close() } // nothing is buffered
