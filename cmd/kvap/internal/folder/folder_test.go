package folder_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cmd/kvap/internal/folder"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
)

// run is one run of a verb: it writes the files, prunes, and finishes.
func run(t *testing.T, dir string, sources []input.Source, force bool, files map[string]string) (stays []string, err error) {
	t.Helper()
	f, err := folder.Open(dir, sources)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, text := range files {
		f.Add(name, []byte(text))
	}
	if _, err := f.Write(force); err != nil {
		return nil, err
	}
	if _, stays, err = f.Prune(); err != nil {
		t.Fatal(err)
	}
	return stays, f.Finish()
}

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	if err := folder.WriteFile(filepath.Join(path...), []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// holds fails where the files of a folder, but for the index, are not these.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == ".kvap-files" {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is there", name)
		}
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is %q, want %q", name, got[name], text)
		}
	}
}

// TestNothingOfAnybodyIsLost: a run writes all of its files or none, and replaces and removes
// only what kvap wrote and nobody has changed.
func TestNothingOfAnybodyIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, "same", dir, "theirs.yaml")
	if _, err := run(t, dir, nil, false, map[string]string{"a.yaml": "1", "sub/b.yaml": "1", "c.yaml": "1", "theirs.yaml": "same"}); err != nil {
		t.Fatal(err)
	}
	write(t, "edited", dir, "sub", "b.yaml")

	var own *exit.Error
	_, err := run(t, dir, nil, false, map[string]string{"a.yaml": "2", "sub/b.yaml": "2"})
	if !errors.As(err, &own) || own.Code != exit.CodeUsage || !strings.Contains(err.Error(), "sub/b.yaml was changed since kvap wrote it") {
		t.Errorf("a changed file: %v", err)
	}
	holds(t, dir, map[string]string{"a.yaml": "1", "sub/b.yaml": "edited", "c.yaml": "1", "theirs.yaml": "same"})
	if _, err = run(t, dir, nil, false, map[string]string{"theirs.yaml": "other"}); err == nil || !strings.Contains(err.Error(), "kvap did not write") {
		t.Errorf("a file of others: %v", err)
	}

	// theirs.yaml was the same, and is theirs all the same: it is not pruned
	source := []input.Source{{Name: filepath.Join(dir, "c.yaml")}}
	stays, err := run(t, dir, source, false, map[string]string{"new.yaml": "1"})
	if err != nil || len(stays) != 2 {
		t.Errorf("%v, stays %q, want those of the changed one and of the input", err, stays)
	}
	holds(t, dir, map[string]string{"sub/b.yaml": "edited", "c.yaml": "1", "theirs.yaml": "same", "new.yaml": "1"})

	if _, err = run(t, dir, nil, true, map[string]string{"theirs.yaml": "other", "sub/b.yaml": "2"}); err != nil {
		t.Errorf("with --force: %v", err)
	}
	holds(t, dir, map[string]string{"sub/b.yaml": "2", "theirs.yaml": "other"})
}

// TestEmptyFolderGoes: a folder goes with the last file that is removed from it, and stays
// where somebody has another one in it.
func TestEmptyFolderGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := run(t, dir, nil, false, map[string]string{"gone/a.yaml": "1", "gone/b.yaml": "1", "kept/a.yaml": "1"}); err != nil {
		t.Fatal(err)
	}
	write(t, "", dir, "kept", "notes.txt")
	if _, err := run(t, dir, nil, false, map[string]string{"a.yaml": "1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty folder: %v", err)
	}
	holds(t, dir, map[string]string{"a.yaml": "1", "kept/notes.txt": ""})
}

// TestIndexIsTrueWhereverARunEnds: a run that breaks off between two files has them known to
// the next one, those that it wrote and those that it did not come to.
func TestIndexIsTrueWhereverARunEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := run(t, dir, nil, false, map[string]string{"a.yaml": "1", "z.yaml": "1"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "sub")); err != nil {
		t.Skip(err)
	}
	files := map[string]string{"a.yaml": "2", "sub/b.yaml": "2", "z.yaml": "2"}
	if _, err := run(t, dir, nil, false, files); err == nil || !strings.Contains(err.Error(), filepath.ToSlash(filepath.Join(dir, "sub"))) {
		t.Fatalf("%v, want an error about the link", err)
	}
	holds(t, dir, map[string]string{"a.yaml": "2", "z.yaml": "1"})
	if err := os.Remove(filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, dir, nil, false, map[string]string{"a.yaml": "3", "sub/b.yaml": "3"}); err != nil {
		t.Errorf("the next run: %v", err)
	}
	holds(t, dir, map[string]string{"a.yaml": "3", "sub/b.yaml": "3"}) // z.yaml is pruned
}

// TestNothingIsWrittenOutside: neither by a name that leads out, nor by a link.
func TestNothingIsWrittenOutside(t *testing.T) {
	t.Parallel()
	around := t.TempDir()
	dir := filepath.Join(around, "out")
	write(t, "theirs", around, "beside", "a.yaml")
	for _, name := range []string{"../a.yaml", "x/../../a.yaml", filepath.ToSlash(filepath.Join(around, "a.yaml"))} {
		if _, err := run(t, dir, nil, true, map[string]string{name: "ours"}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := os.Symlink(filepath.Join("..", "beside"), filepath.Join(dir, "link")); err == nil {
		_, err := run(t, dir, nil, true, map[string]string{"link/a.yaml": "ours"})
		if err == nil || !strings.Contains(err.Error(), "out/link is a link that leads out of the folder") {
			t.Errorf("a link: %v", err)
		}
	}
	holds(t, around, map[string]string{"beside/a.yaml": "theirs"})
}

// TestLineEndsOfGit: a repository that is checked out on Windows has other line ends in the
// files and in the index. They are kvap's still.
func TestLineEndsOfGit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := run(t, dir, nil, false, map[string]string{"a.yaml": "a: 1\nb: 2\n", "old.yaml": "a: 1\n"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.yaml", "old.yaml", ".kvap-files"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, string(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))), dir, name)
	}
	stays, err := run(t, dir, nil, false, map[string]string{"a.yaml": "a: 2\n"})
	if err != nil || len(stays) > 0 {
		t.Errorf("%v, stays %q", err, stays)
	}
	holds(t, dir, map[string]string{"a.yaml": "a: 2\n"})

	write(t, "a: 3\r\n", dir, "a.yaml") // somebody has changed it
	if stays, err = run(t, dir, nil, false, nil); err != nil || !slices.ContainsFunc(stays, func(s string) bool { return strings.Contains(s, "a.yaml was changed") }) {
		t.Errorf("%v, stays %q", err, stays)
	}
}
