package input

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// A Tail reads lines of files that may grow, each line once. A folder stands for the
// JSON Lines and logs in it, which may come and go. A log that was rotated is read to its
// end under its new name, and then those that came after it.
type Tail struct {
	paths []string
	stdin io.Reader
	read  map[string]*tailed
	// Lost is called with the path of a log that was rotated, and whose rest is nowhere.
	Lost func(path string)
	// Longest is how many bytes a line may have; 32 MiB where it is 0.
	Longest int
	// Long is called with the path of a file that has a longer line, which is passed over. Where it
	// is nil, such a line is an error.
	Long func(path string)
}

// tailed is how far a file has been read.
type tailed struct {
	offset int64
	lines  int
	ended  bool // nothing more can come: it is compressed, or no file
	file   os.FileInfo
}

// NewTail tells of paths that are not there.
func NewTail(paths []string, stdin io.Reader) (*Tail, error) {
	for _, path := range paths {
		if path == "-" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return nil, PathError(err)
		}
	}
	return &Tail{paths: paths, stdin: stdin, read: map[string]*tailed{}, Lost: func(string) {}}, nil
}

// ToEnd passes over what is in the files by now.
func (t *Tail) ToEnd() error {
	files, err := t.files()
	for _, path := range files {
		if info, err := os.Stat(path); err == nil {
			t.read[path] = &tailed{offset: info.Size(), file: info}
		}
	}
	return err
}

// Each calls visit for each line that is new, until it says no. A line without an end
// is read where it is the last time; else it may be half of one.
func (t *Tail) Each(last bool, visit func([]byte, diag.Pos) bool) error {
	files, err := t.files()
	if err != nil {
		return err
	}
	for _, path := range files {
		if t.read[path] == nil {
			t.read[path] = &tailed{}
		}
		if err := t.file(path, t.read[path], last, visit); err != nil {
			return err
		}
	}
	return nil
}

// Total is how many lines were read.
func (t *Tail) Total() (lines int) {
	for _, one := range t.read {
		lines += one.lines
	}
	return lines
}

func (t *Tail) files() ([]string, error) {
	var out []string
	for _, path := range t.paths {
		info, err := os.Stat(path)
		if path == "-" || err == nil && !info.IsDir() {
			out = append(out, path)
			continue
		}
		if err != nil {
			return nil, PathError(err)
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, PathError(err)
		}
		for _, e := range entries {
			name := strings.TrimSuffix(e.Name(), ".gz")
			if !e.IsDir() && (strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".log")) {
				out = append(out, filepath.Join(path, e.Name()))
			}
		}
	}
	return slices.Compact(out), nil
}

func (t *Tail) file(path string, at *tailed, last bool, visit func([]byte, diag.Pos) bool) error {
	if at.ended {
		return nil
	}
	if path == "-" {
		at.ended = true
		lines, _, err := unpacked(t.stdin)
		if err != nil {
			return fmt.Errorf("%s: %w", Stdin, err)
		}
		return t.readLines(at, lines, Stdin, true, visit)
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was rotated away
	}
	if err != nil {
		return PathError(err)
	}
	defer f.Close()
	lines, zipped, err := unpacked(f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if zipped {
		at.ended = true
		return t.readLines(at, lines, filepath.ToSlash(path), true, visit)
	}
	info, err := f.Stat()
	if err != nil {
		return PathError(err)
	}
	switch {
	case !info.Mode().IsRegular():
	case at.file != nil && !os.SameFile(at.file, info):
		if err := t.rotated(path, at, visit); err != nil {
			return err
		}
		*at = tailed{}
	case info.Size() < at.offset:
		*at = tailed{} // it was emptied
	}
	at.file = info
	if at.offset > 0 {
		if _, err := f.Seek(at.offset, io.SeekStart); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		lines.Reset(f)
	}
	return t.readLines(at, lines, filepath.ToSlash(path), last, visit)
}

// rotated reads what came into a log after it was read last and before it was given
// another name, and the logs that were rotated after it: audit.log becomes
// audit-TIME.log, perhaps compressed.
func (t *Tail) rotated(path string, at *tailed, visit func([]byte, diag.Pos) bool) error {
	if slices.ContainsFunc(t.paths, func(p string) bool { return p == filepath.Dir(path) }) {
		return nil // the others are read by their own names
	}
	ext := filepath.Ext(path)
	others, err := filepath.Glob(strings.TrimSuffix(path, ext) + "-*" + ext + "*")
	if err != nil {
		return nil //nolint:nilerr // the name is no pattern, and nothing is known of others
	}
	slices.Sort(others)
	i := slices.IndexFunc(others, func(other string) bool {
		info, err := os.Stat(other)
		return err == nil && os.SameFile(at.file, info)
	})
	if i < 0 {
		t.Lost(path)
		return nil
	}
	for n, other := range others[i:] {
		from := &tailed{}
		if n == 0 {
			from = &tailed{offset: at.offset, lines: at.lines}
		}
		if err := t.file(other, from, true, visit); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tail) readLines(a *tailed, lines *bufio.Reader, name string, last bool, visit func([]byte, diag.Pos) bool) error {
	for {
		line, size, err := t.readLine(lines)
		if err != nil && !last {
			return failed(name, a.lines+1, err)
		}
		number := a.lines + 1
		a.offset += size
		if size > 0 {
			a.lines++
		}
		if line == nil && size > 0 && t.Long != nil {
			t.Long(name)
		}
		content := bytes.TrimSpace(line)
		if number == 1 {
			content = bytes.TrimPrefix(content, []byte("\ufeff"))
		}
		if len(content) > 0 && !visit(content, diag.Pos{File: name, Line: number, Col: 1}) {
			return nil
		}
		if err != nil {
			return failed(name, number, err)
		}
	}
}

// failed says where reading failed; the end of a file is no failure.
func failed(name string, line int, err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("%s:%d: %w", name, line, err)
}

// unpacked reads what may be gzipped, whatever its name is.
func unpacked(in io.Reader) (lines *bufio.Reader, zipped bool, err error) {
	lines = bufio.NewReaderSize(in, 1<<16)
	if magic, _ := lines.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return lines, false, nil
	}
	unzipped, err := gzip.NewReader(lines)
	if err != nil {
		return nil, true, err
	}
	return bufio.NewReaderSize(unzipped, 1<<16), true, nil
}

// readLine reads a line, and says how many bytes that was. It is nil where it is too long.
func (t *Tail) readLine(lines *bufio.Reader) (line []byte, size int64, err error) {
	longest := cmp.Or(t.Longest, lineLimit)
	for {
		part, err := lines.ReadSlice('\n')
		size += int64(len(part))
		switch {
		case size <= int64(longest):
			line = append(line, part...)
		case t.Long == nil:
			return nil, size, errors.New("the line is larger than 32 MiB; JSON Lines have one request on each line")
		default:
			line = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// lineLimit is the most that a line of requests may have, in bytes. An API server
// takes 3 MiB; a device or a file of another kind may have no end of line at all.
const lineLimit = 32 << 20
