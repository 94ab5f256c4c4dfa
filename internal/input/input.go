package input

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/manifest"
)

const (
	// Stdin is the name of standard input.
	Stdin = "stdin"
	// SizeLimit is one byte more than a policy file may have: enough to see that
	// a file is too large without reading all of it.
	SizeLimit = 10<<20 + 1
)

// A Source is one file of the input. Found tells that a folder was searched for
// it, rather than that the user named it. Below is its name below what the user
// named, wherever that is.
type Source struct {
	Name  string
	Below string
	Data  []byte
	Found bool
}

// NamesBelow are the names by which provenance calls the sources.
func NamesBelow(sources []Source) map[string]string {
	names := map[string]string{}
	for _, s := range sources {
		names[s.Name] = s.Below
	}
	return names
}

// Read reads the paths in the order given: files, folders with all that is
// in them by name, and - for standard input. A path that does not exist ends the
// run before it has done anything.
func Read(paths []string, stdin io.Reader) ([]Source, diag.List, error) {
	r := &reader{seen: map[string]bool{}}
	for _, path := range paths {
		if path == "-" {
			if err := r.read(Stdin, Stdin, stdin, false); err != nil {
				return nil, nil, err
			}
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, nil, PathError(err)
		}
		if info.IsDir() {
			err = r.folder(path)
		} else {
			err = r.file(path, filepath.Base(path), false)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return r.sources, r.found, nil
}

// Sources reads the paths, and what a kustomize folder renders to, if there is one.
func Sources(paths []string, folder string, stdin io.Reader) ([]Source, diag.List, error) {
	sources, found, err := Read(paths, stdin)
	if err == nil && folder != "" {
		var rendered Source
		rendered, err = kustomize(folder)
		sources = append(sources, rendered)
	}
	if err != nil {
		return nil, nil, exit.Usage(err)
	}
	return sources, found, nil
}

// Sort sorts sources as a folder with all of them would be read, so that who lists
// them in another order gets the same.
func Sort(sources []Source) {
	slices.SortStableFunc(sources, func(a, b Source) int {
		of := func(s Source) []string { return strings.Split(filepath.ToSlash(s.Below), "/") }
		return cmp.Or(slices.Compare(of(a), of(b)), strings.Compare(a.Name, b.Name))
	})
}

// StdinOnce refuses to read standard input for several of the lists of paths.
func StdinOnce(lists ...[]string) error {
	if fromStdin := slices.DeleteFunc(slices.Concat(lists...), func(p string) bool { return p != "-" }); len(fromStdin) > 1 {
		return errors.New("only one thing can be read from standard input")
	}
	return nil
}

// Names are the paths and the kustomize folder in a message.
func Names(paths []string, folder string) string {
	var names []string
	for _, p := range paths {
		if p == "-" {
			p = "standard input"
		}
		names = append(names, p)
	}
	if folder != "" {
		names = append(names, folder)
	}
	return strings.Join(names, ", ")
}

type reader struct {
	sources []Source
	found   diag.List
	seen    map[string]bool // paths, so that naming a file twice reads it once
}

// folder reads all YAML and JSON files below dir. Hidden folders are passed over.
// A file that cannot be read is a diagnostic, and the others are still read.
func (r *reader) folder(dir string) error {
	return Walk(dir, func(path string, d fs.DirEntry, err error) error {
		hidden := filepath.Clean(path) != filepath.Clean(dir) && strings.HasPrefix(filepath.Base(path), ".")
		switch {
		case err != nil:
			r.found = append(r.found, unreadable(path, err))
			return nil
		case d.IsDir():
			if hidden {
				return fs.SkipDir
			}
			return nil
		case d.Type()&fs.ModeSymlink != 0 && LeadsToFolder(path):
			if !hidden {
				r.found = append(r.found, diag.Warnf(diag.Pos{File: filepath.ToSlash(path)}, diag.Unreadable,
					"links to folders are not followed inside of folders; name this one as a PATH of its own"))
			}
			return nil
		case !hidden && isLoop(path): // what it may have led to, nobody knows
			r.found = append(r.found, diag.Errorf(diag.Pos{File: filepath.ToSlash(path)}, diag.Unreadable, "this link leads to itself; remove it, or point it at a file"))
			return nil
		case !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			r.found = append(r.found, diag.Errorf(diag.Pos{File: filepath.ToSlash(path)}, diag.Unreadable,
				"this is no file but a pipe, a socket or a device, and might never end; name it as a PATH of its own, or remove it"))
			return nil
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			below = path
		}
		if err := r.file(path, below, true); err != nil {
			r.found = append(r.found, unreadable(path, err))
		}
		return nil
	})
}

// Walk is filepath.WalkDir, save that a dir which is a link is entered.
func Walk(dir string, visit fs.WalkDirFunc) error {
	if LeadsToFolder(dir) {
		dir = filepath.Clean(dir) + string(filepath.Separator)
	}
	return filepath.WalkDir(dir, visit)
}

// LeadsToFolder tells of a folder, or a link to one.
func LeadsToFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isLoop tells of a link that leads back to itself.
func isLoop(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, syscall.ELOOP)
}

func (r *reader) file(path, below string, found bool) error {
	if r.seen[filepath.Clean(path)] {
		return nil
	}
	r.seen[filepath.Clean(path)] = true
	f, err := os.Open(path)
	if err != nil {
		return PathError(err)
	}
	defer f.Close()
	return r.read(filepath.ToSlash(path), filepath.ToSlash(below), f, found)
}

func (r *reader) read(name, below string, in io.Reader, found bool) error {
	data, err := io.ReadAll(io.LimitReader(in, SizeLimit))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.sources = append(r.sources, Source{Name: name, Below: below, Data: data, Found: found})
	return nil
}

func unreadable(path string, err error) diag.Diagnostic {
	return diag.Errorf(diag.Pos{File: filepath.ToSlash(path)}, diag.Unreadable, "cannot be read: %v", PathError(err))
}

// PathError leaves out the system call, which says nothing to a user.
func PathError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// kustomize renders a folder with the program of that name, or with kubectl.
func kustomize(dir string) (Source, error) {
	for _, command := range [][]string{{"kustomize", "build"}, {"kubectl", "kustomize"}} {
		program, err := exec.LookPath(command[0])
		if err != nil {
			continue
		}
		var errs bytes.Buffer
		cmd := exec.Command(program, command[1], dir)
		cmd.Stderr = &errs
		data, err := cmd.Output()
		if err != nil {
			return Source{}, fmt.Errorf("%s %s %s: %w\n%s", command[0], command[1], dir, err, strings.TrimSpace(errs.String()))
		}
		return Source{Name: filepath.ToSlash(dir), Below: filepath.Base(dir), Data: data}, nil
	}
	return Source{}, errors.New("-k needs kustomize or kubectl, and neither is in PATH; " +
		"render the folder elsewhere and pipe it: kustomize build DIR | kvap convert -")
}

// NotAmong refuses to write a file of a flag over a source.
func NotAmong(sources []Source, flag, file string) error {
	if written := Overwritten(file, sources); written != "" {
		return exit.Usage(fmt.Errorf("%s %s would overwrite %s, which is among the input; name another file", flag, file, written))
	}
	return nil
}

// Overwritten is the source that a file to write is, by this name or another.
func Overwritten(file string, sources []Source) string {
	to, err := os.Stat(file)
	if err != nil || !to.Mode().IsRegular() {
		return ""
	}
	for _, s := range sources {
		if from, err := os.Stat(s.Name); err == nil && os.SameFile(from, to) {
			return s.Name
		}
	}
	return ""
}

// Manifests reads the objects of some paths. A path that does not exist ends
// the run; a document that cannot be read is a diagnostic.
func Manifests(flag string, paths []string, stdin io.Reader) ([]manifest.Object, []Source, diag.List, error) {
	if len(paths) == 0 {
		return nil, nil, nil, nil
	}
	sources, found, err := Read(paths, stdin)
	if err != nil {
		return nil, nil, nil, exit.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	var objects []manifest.Object
	for _, s := range sources {
		if len(s.Data) == SizeLimit {
			found = append(found, diag.Errorf(diag.Pos{File: s.Name}, diag.Unreadable, "the file is larger than 10 MiB; split it"))
			continue
		}
		read, ds := manifest.Read(s.Name, s.Data)
		objects, found = append(objects, read...), append(found, ds...)
	}
	return objects, sources, found, nil
}

// OneOf finds a flag's value among those that are allowed.
func OneOf[T ~string](flag, value string, allowed ...T) (T, error) {
	if slices.Contains(allowed, T(value)) {
		return T(value), nil
	}
	return "", fmt.Errorf("%s %s: want one of %s", flag, value, strings.Join(Words(allowed...), ", "))
}

// Words are values of a type that is text.
func Words[T ~string](list ...T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// Release reads a Kubernetes release.
func Release(text string) (cel.Release, error) {
	release, err := cel.ParseRelease(text)
	if err != nil {
		return release, fmt.Errorf("--kubernetes-version %s: %w", text, err)
	}
	if !release.IsSupported() {
		return release, fmt.Errorf("--kubernetes-version %s: kvap compiles for %s to %s", text, cel.Oldest, cel.Latest)
	}
	return release, nil
}
