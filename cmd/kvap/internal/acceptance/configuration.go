package acceptance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// ConfigurationFile is the name of the configuration file.
const ConfigurationFile = ".kvap.yaml"

// A Configuration is what a configuration file says. Its paths are relative to its folder.
type Configuration struct {
	Paths  []string       `json:"paths"`  // what is read where no PATH is given
	Ignore []Ignore       `json:"ignore"` // what is accepted
	Check  map[string]any `json:"check"`  // defaults of the flags of check

	file  string
	flags map[string]diag.Pos // of Check
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
	c := &Configuration{file: full, flags: map[string]diag.Pos{}}
	nodes, found := policy.Documents(file, data)
	for _, d := range found {
		if d.Severity == diag.Error {
			return nil, d
		}
	}
	for _, n := range nodes {
		if err := c.check(n); err != nil {
			return nil, err
		}
	}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// check says what is wrong with a configuration, and where, and remembers where flags are set.
func (c *Configuration) check(n *policy.Node) error {
	if err := keysOf(n, "the configuration", "paths", "ignore", "check"); err != nil {
		return err
	}
	if flags := n.Get("check"); flags != nil {
		if flags.Kind != policy.Map && flags.Kind != policy.Null {
			return fmt.Errorf("%s: check must be a map of flags and their values", flags.Pos)
		}
		for _, f := range flags.Fields {
			c.flags[f.Key] = f.Pos
		}
	}
	ignore := n.Get("ignore")
	for _, text := range []*policy.Node{n.Get("paths"), ignore} {
		if text != nil && text.Kind != policy.List && text.Kind != policy.Null {
			return fmt.Errorf("%s: %s must be a list", text.Pos, text.Pos.Path)
		}
	}
	if ignore == nil {
		return nil
	}
	for _, item := range ignore.Items {
		if err := keysOf(item, "an entry of ignore", "code", "reason", "paths"); err != nil {
			return err
		}
		code, reason := item.Get("code"), item.Get("reason")
		if code == nil {
			return fmt.Errorf("%s: the entry has no code", item.Pos)
		}
		if _, ok := diag.ParseCode(code.Str); !ok {
			return fmt.Errorf("%s: there is no code %q; kvap explain lists all", code.Pos, code.Str)
		}
		if reason == nil || strings.TrimSpace(reason.Str) == "" {
			return fmt.Errorf("%s: the entry, of %s, has no reason", item.Pos, code.Str)
		}
	}
	return nil
}

// keysOf says which key of a map is none of those that are known.
func keysOf(n *policy.Node, what string, known ...string) error {
	if n.Kind != policy.Map {
		return fmt.Errorf("%s: %s must be a map with %s", n.Pos, what, strings.Join(known, ", "))
	}
	for _, f := range n.Fields {
		if slices.Contains(known, f.Key) {
			continue
		}
		if guess := diag.Nearest(f.Key, known); guess != "" {
			return fmt.Errorf("%s: %s has no %s; did you mean %s?", f.Pos, what, f.Key, guess)
		}
		return fmt.Errorf("%s: %s has no %s; it has %s", f.Pos, what, f.Key, strings.Join(known, ", "))
	}
	return nil
}

// At is where the file sets a flag of check.
func (c *Configuration) At(flag string) diag.Pos { return c.flags[flag] }

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
