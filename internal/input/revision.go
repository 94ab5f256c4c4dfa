package input

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// IsRevision tells that a name is no path but a file or folder of a Git revision, REV:PATH. What
// is there as a path is one.
func IsRevision(name string) bool {
	rev, _, ok := strings.Cut(name, ":")
	if _, err := os.Lstat(name); err == nil || !ok || strings.HasPrefix(name, "-") {
		return false
	}
	return len(rev) > 1 // a single letter is a drive
}

// Revision reads a file or folder of a Git revision, by the git that is installed, as Read would
// where it is checked out. As git has it, the path counts from the root of the repository, and one
// that starts with ./ from the working directory.
func Revision(name string) ([]Source, diag.List, error) {
	kind, err := git("cat-file", "-t", name)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w; name it as REV:PATH, with the path from the root of the repository, or REV:./PATH", name, err)
	}
	if strings.TrimSpace(string(kind)) == "blob" {
		data, err := git("cat-file", "blob", name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		return []Source{{Name: name, Below: path.Base(name), Data: data[:min(len(data), SizeLimit)]}}, nil, nil
	}
	archive, err := git("archive", "--format=tar", name)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return unpack(name, archive)
}

// unpack are the files of an archive that a folder would be read for.
func unpack(name string, archive []byte) (sources []Source, found diag.List, err error) {
	in := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			Sort(sources)
			return sources, found, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		hidden := slices.ContainsFunc(strings.Split(h.Name, "/"), func(s string) bool { return strings.HasPrefix(s, ".") })
		at := strings.TrimSuffix(name, "/") + "/" + h.Name
		if strings.HasSuffix(name, ":") {
			at = name + h.Name
		}
		switch {
		case hidden || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(h.Name))):
		case h.Typeflag == tar.TypeReg:
			data, err := io.ReadAll(io.LimitReader(in, SizeLimit))
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", at, err)
			}
			sources = append(sources, Source{Name: at, Below: h.Name, Data: data, Found: true})
		case h.Typeflag != tar.TypeDir:
			found = append(found, diag.Warnf(diag.Pos{File: at}, diag.Unreadable, "links are not followed inside of a revision; name the file itself"))
		}
	}
}

// git runs the program of that name. It is told no option by what a user names.
func git(args ...string) ([]byte, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("a revision is read with git, which is not in the PATH")
	}
	var stdout, stderr bytes.Buffer
	run := exec.Command(program, args...)
	run.Stdout, run.Stderr = &stdout, &stderr
	if err := run.Run(); err != nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			return nil, errors.New(strings.TrimPrefix(text, "fatal: "))
		}
		return nil, err
	}
	return stdout.Bytes(), nil
}
