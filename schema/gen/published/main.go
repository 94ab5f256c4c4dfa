package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	from := flag.String("from", "../../../shared/crds-popular", "the folder to read")
	out := flag.String("out", "../data/published", "the folder to write to")
	flag.Parse()
	if err := generate(*from, *out); err != nil {
		fmt.Fprintf(os.Stderr, "published: %v\n", err)
		os.Exit(1)
	}
}

// An entry is a definition in the index. Also are further sources of versions.
type entry struct {
	Group, Kind, Plural, Scope string
	origin
	Also []struct {
		Versions []string
		origin
	}
}

// An origin is where a file comes from.
type origin struct{ Repo, Ref, Commit, License string }

// A definition is what is read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Versions []version `yaml:"versions"`
	} `yaml:"spec"`
}

type version struct {
	Name         string         `yaml:"name"`
	Served       bool           `yaml:"served"`
	Subresources map[string]any `yaml:"subresources"`
	Schema       struct {
		OpenAPI map[string]any `yaml:"openAPIV3Schema"`
	} `yaml:"schema"`
}

func generate(from, out string) error {
	text, err := os.ReadFile(filepath.Join(from, "index.json"))
	if err != nil {
		return err
	}
	var entries []entry
	if err := json.Unmarshal(text, &entries); err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) })
	var kinds strings.Builder
	schemas := map[string]*table{}
	for _, e := range entries {
		if err := e.read(from, &kinds, schemas); err != nil {
			return fmt.Errorf("%s %s: %w", e.Group, e.Kind, err)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "kinds.txt"), []byte(kinds.String()), 0o644); err != nil {
		return err
	}
	for group, t := range schemas {
		if err := os.WriteFile(filepath.Join(out, group+".json.gz"), compress(t.encode()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// read adds the versions that are served.
func (e entry) read(from string, kinds *strings.Builder, schemas map[string]*table) error {
	text, err := os.ReadFile(filepath.Join(from, e.Group, e.Plural+".yaml"))
	if err != nil {
		return err
	}
	var d definition
	if err := yaml.Unmarshal(text, &d); err != nil {
		return err
	}
	slices.SortFunc(d.Spec.Versions, func(a, b version) int { return compareVersions(b.Name, a.Name) })
	for _, v := range d.Spec.Versions {
		if !v.Served || v.Schema.OpenAPI == nil {
			continue
		}
		o := e.origin
		for _, also := range e.Also {
			if slices.Contains(also.Versions, v.Name) {
				o = also.origin
			}
		}
		words := []string{e.Group, v.Name, e.Kind, e.Plural, e.Scope, v.subresources(), o.Repo, o.release(), o.License}
		fmt.Fprintln(kinds, strings.Join(words, " "))
		if schemas[e.Group] == nil {
			schemas[e.Group] = &table{seen: map[string]int{}, numbers: map[string]string{}}
		}
		schemas[e.Group].add(v.Name+"."+e.Kind, reduce(v.Schema.OpenAPI))
	}
	return nil
}

// release is the tag, or the commit where there is none.
func (o origin) release() string {
	if o.Ref == "HEAD" {
		return o.Commit[:12]
	}
	return o.Ref
}

func (v version) subresources() string {
	var names []string
	for name, there := range v.Subresources {
		if there != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return cmp.Or(strings.Join(names, ","), "-")
}

// compareVersions orders as Kubernetes does: v1 is newer than v2beta1, and that than v2alpha1.
func compareVersions(a, b string) int {
	x, y := versionKey(a), versionKey(b)
	return cmp.Or(slices.Compare(x, y), cmp.Compare(a, b))
}

func versionKey(name string) []int {
	m := regexp.MustCompile(`^v(\d+)(?:(alpha|beta)(\d+))?$`).FindStringSubmatch(name)
	if m == nil {
		return []int{0, 0, 0}
	}
	number := func(s string) (n int) {
		_, _ = fmt.Sscan(s, &n)
		return n
	}
	level := map[string]int{"": 3, "beta": 2, "alpha": 1}[m[2]]
	return []int{level, number(m[1]), number(m[3])}
}

// compress is gzip with no time and no name in its header: the same text gives the same bytes.
func compress(text []byte) []byte {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	w.Write(text)
	w.Close()
	return buf.Bytes()
}
