package acceptance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/diag"
)

// ConfigurationFile is the name of the configuration file.
const ConfigurationFile = ".kvap.yaml"

// A Configuration is what a configuration file says. Its paths are relative to its folder.
type Configuration struct {
	Paths  []string       `json:"paths"`  // what is read where no PATH is given
	Ignore []Ignore       `json:"ignore"` // what is accepted
	Check  map[string]any `json:"check"`  // defaults of the flags of check

	file string
}

// An Ignore accepts findings of a code, everywhere or in some files and folders.
type Ignore struct {
	Code   diag.Code `json:"code"`
	Reason string    `json:"reason"`
	Paths  []string  `json:"paths"` // files, folders, or patterns such as vendor/*/policies
}

// Find reads the configuration file that is nearest to a file or folder: in its folder, or
// above it, up to the root of its git repository. Without one, nothing is configured.
func Find(near string) (*Configuration, error) {
	dir, err := filepath.Abs(near)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	for root := repositoryOf(dir); ; dir = filepath.Dir(dir) {
		c, err := Read(filepath.Join(dir, ConfigurationFile))
		if !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
		if dir == root {
			return &Configuration{}, nil
		}
	}
}

// repositoryOf is the root of the git repository that a folder is in; the folder itself where
// there is none.
func repositoryOf(folder string) string {
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			return folder
		}
	}
}

// Read reads a configuration file.
func Read(file string) (*Configuration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	c := &Configuration{file: full}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, ignore := range c.Ignore {
		switch {
		case ignore.Code == 0:
			return nil, fmt.Errorf("%s: ignore[%d] has no code", file, i)
		case strings.TrimSpace(ignore.Reason) == "":
			return nil, fmt.Errorf("%s: ignore[%d], of %s, has no reason", file, i, ignore.Code)
		}
	}
	return c, nil
}

// Path is a path of the configuration file as the program that runs reads it.
func (c *Configuration) Path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	joined := filepath.Join(filepath.Dir(c.file), p)
	if here, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(here, joined); err == nil {
			return relative
		}
	}
	return joined
}

// File is the name of the file; "" where there is none.
func (c *Configuration) File() string { return c.file }

// Accepted are the findings that the file accepts.
func (c *Configuration) Accepted() (out []Acceptance) {
	for _, ignore := range c.Ignore {
		a := Acceptance{Code: ignore.Code, Reason: ignore.Reason}
		if len(ignore.Paths) > 0 {
			a.in = func(at diag.Pos) bool { return c.below(at.File, ignore.Paths) }
		}
		out = append(out, a)
	}
	return out
}

// below tells that a file is one of some, or below one of them. What is in no file, or comes
// from the standard input, is not.
func (c *Configuration) below(file string, paths []string) bool {
	if file == "" || file == "-" {
		return false
	}
	full, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	relative, err := filepath.Rel(filepath.Dir(c.file), full)
	if err != nil {
		return false
	}
	for at := filepath.ToSlash(relative); at != "." && at != "/"; at = path.Dir(at) {
		for _, pattern := range paths {
			if ok, err := path.Match(path.Clean(pattern), at); ok && err == nil {
				return true
			}
		}
	}
	return false
}
