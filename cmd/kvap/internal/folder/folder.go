package folder

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/report/doc"
)

// A Folder is what a run writes its files into. Nothing is written outside of it:
// names that lead out, and links that do, are errors.
//
// It knows what it wrote: indexName lists its files with their hashes, in the form
// of sha256sum. So a later run can tell its own files from those of others, and
// from those that were changed since: these it replaces only when told to. Files are
// added first, and written when it is known that all of them may be. The index is
// written before, with the old hash and the new one of each file, and after: so it is
// true wherever a run ends.
type Folder struct {
	name    string
	root    *os.Root
	sources []input.Source // of the run, which are not removed and not replaced
	added   []addedFile
	written map[string]string   // hashes by name, of what this run wrote
	earlier map[string][]string // those of earlier runs
}

// An addedFile is a file to be written. Its name has slashes on every system.
type addedFile struct {
	name string
	data []byte
}

const (
	indexName = ".kvap-files"
	// newName is what a file is called until it is complete.
	newName = indexName + ".new"
)

// Open makes the folder where it does not exist. sources are what the run reads.
func Open(name string, sources []input.Source) (*Folder, error) {
	if name == "-" {
		return nil, exit.Usage(errors.New("a folder cannot be written to standard output; name one, and ./- where it is called -"))
	}
	if err := os.MkdirAll(name, 0o755); err != nil {
		return nil, input.PathError(err)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, input.PathError(err)
	}
	f := &Folder{name: name, root: root, sources: sources, written: map[string]string{}, earlier: map[string][]string{}}
	index, err := root.ReadFile(indexName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, f.blame(indexName, err)
	}
	for line := range strings.Lines(string(index)) {
		if hash, file, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "  "); ok {
			f.earlier[file] = append(f.earlier[file], hash)
		}
	}
	return f, nil
}

// Add has a file written later.
func (f *Folder) Add(name string, data []byte) {
	f.added = append(f.added, addedFile{name, data})
}

// Write writes what was added; nothing of it, where a file stands in the way that is
// among the sources or that kvap did not write, unless it is forced. A file of others
// that is the same already stays theirs; same is how many there are.
func (f *Folder) Write(force bool) (same int, err error) {
	slices.SortFunc(f.added, func(a, b addedFile) int { return strings.Compare(a.name, b.name) })
	var inTheWay []string
	for _, file := range f.added {
		theirs, why, err := f.foreign(file)
		switch {
		case err != nil:
			return 0, f.blame(file.name, err)
		case theirs && !force:
			same++
			continue
		case why != "":
			inTheWay = append(inTheWay, why)
		}
		f.written[file.name] = hashOf(file.data)
	}
	if len(inTheWay) > 0 && !force {
		more := ""
		if n := len(inTheWay) - 1; n > 0 {
			more = fmt.Sprintf(" and %s", doc.Count(n, "more file", "more files"))
		}
		return 0, exit.Usage(fmt.Errorf("nothing was written to %s: %s%s; name another folder, or say --force", f.name, inTheWay[0], more))
	}
	if err := f.list(f.earlier); err != nil {
		return 0, err
	}
	for _, file := range f.added {
		if f.written[file.name] == "" {
			continue
		}
		if err := f.replace(file.name, file.data); err != nil {
			return 0, f.blame(file.name, err)
		}
	}
	return same, nil
}

// replace writes a file, which has its name only when it is complete.
func (f *Folder) replace(name string, data []byte) error {
	err := f.root.MkdirAll(path.Dir(name), 0o755)
	if err == nil {
		err = f.root.WriteFile(newName, data, 0o644)
	}
	if err == nil {
		err = f.root.Rename(newName, name)
	}
	if err != nil {
		_ = f.root.Remove(newName) // it may not be there
	}
	return err
}

// foreign says why the file that is there already may not be replaced, "" where it
// may; or that it is somebody's, and the same.
func (f *Folder) foreign(file addedFile) (theirs bool, why string, err error) {
	data, err := f.root.ReadFile(file.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	name := path.Join(f.name, file.name)
	switch hashes := f.earlier[file.name]; {
	case err != nil:
		return false, "", err
	case bytes.Equal(data, file.data):
		return len(hashes) == 0, "", nil
	case input.Overwritten(name, f.sources) != "":
		return false, name + " is among the input", nil
	case len(hashes) == 0:
		return false, "kvap did not write " + name, nil
	case !isOneOf(hashes, data):
		return false, name + " was changed since kvap wrote it", nil
	}
	return false, "", nil
}

// isOneOf tells that a file is as it was written, but for the line ends that Git gives to
// files on Windows: kvap writes none of these.
func isOneOf(hashes []string, data []byte) bool {
	return slices.Contains(hashes, hashOf(data)) || slices.Contains(hashes, hashOf(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))))
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Prune removes what earlier runs wrote and this one did not, with the folder that is empty
// then, and says what stays: what
// is among the input, and what was changed since, which is no longer theirs.
func (f *Folder) Prune() (removed int, stays []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(f.earlier)) {
		if f.written[name] != "" {
			continue
		}
		data, err := f.root.ReadFile(name)
		switch full := path.Join(f.name, name); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return removed, stays, f.blame(name, err)
		case input.Overwritten(full, f.sources) != "":
			stays = append(stays, full+" is among the input, and stays")
			continue
		case f.rendered(full):
			stays = append(stays, full+" is in a folder that was rendered, which may be made of it, and stays")
			continue
		case !isOneOf(f.earlier[name], data):
			stays = append(stays, full+" was changed since it was written, and stays")
		default:
			if err := f.root.Remove(name); err != nil {
				return removed, stays, f.blame(name, err)
			}
			if dir := path.Dir(name); dir != "." && f.link(dir) == "" {
				_ = f.root.Remove(dir) // which it does not where something is in it
			}
			removed++
		}
		delete(f.earlier, name)
	}
	return removed, stays, nil
}

// rendered tells of a file in a kustomize folder: nobody knows which of its files are
// input.
func (f *Folder) rendered(file string) bool {
	file, err := filepath.Abs(file)
	return err == nil && slices.ContainsFunc(f.sources, func(s input.Source) bool {
		dir, err := filepath.Abs(s.Name)
		return err == nil && input.LeadsToFolder(dir) && strings.HasPrefix(file, dir+string(filepath.Separator))
	})
}

// Finish writes the index of what is done: what this run wrote, and what earlier ones
// did.
func (f *Folder) Finish() error {
	others := maps.Clone(f.earlier)
	maps.DeleteFunc(others, func(name string, _ []string) bool { return f.written[name] != "" })
	return f.list(others)
}

// list writes the index: what this run writes, and others.
func (f *Folder) list(others map[string][]string) error {
	var lines []string
	for name, hash := range f.written {
		lines = append(lines, name+"\x00"+hash)
	}
	for name, hashes := range others {
		for _, hash := range hashes {
			lines = append(lines, name+"\x00"+hash)
		}
	}
	slices.Sort(lines)
	var b strings.Builder
	for _, line := range slices.Compact(lines) {
		name, hash, _ := strings.Cut(line, "\x00")
		b.WriteString(hash + "  " + name + "\n")
	}
	return f.blame(indexName, f.replace(indexName, []byte(b.String())))
}

// blame names the file as the user knows it.
func (f *Folder) blame(name string, err error) error {
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
func (f *Folder) link(name string) string {
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

// Wrote is how many files this run wrote.
func (f *Folder) Wrote() int { return len(f.written) }

// Stale is how many files of earlier runs are there that this one has not written again.
func (f *Folder) Stale() (n int) {
	for name := range f.earlier {
		if _, err := f.root.Stat(name); err == nil && f.written[name] == "" {
			n++
		}
	}
	return n
}

// Before are the names of the files that earlier runs wrote.
func (f *Folder) Before() iter.Seq[string] { return maps.Keys(f.earlier) }

// Close lets the folder go.
func (f *Folder) Close() { _ = f.root.Close() } // nothing is buffered

// WriteFile writes a file, and makes the folders above it.
func WriteFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return input.PathError(err)
	}
	return input.PathError(os.WriteFile(path, data, 0o644))
}
