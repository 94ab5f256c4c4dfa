package suite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/policy"
)

// material is what a suite names.
type material struct {
	policies   []*policy.Policy
	exceptions []*policy.Exception
	cleanups   []*policy.Cleanup
	unread     []*policy.Unread
	deployed   judge.Deployed
	mutations  judge.DeployedMutations
	resources  []manifest.Object
	existing   []manifest.Object // targets of rules that change existing objects
	values     *values
	user       *userInfo        // nil where the suite names none
	objects    []map[string]any // that rules look up
	// definitions are CustomResourceDefinitions, as text by file and as objects.
	definitions []map[string]any
	files       map[string][]byte
	images      map[string]map[string]any
	answers     []answers // later ones win
}

// load reads all that a suite names. Where a file is missing there is nothing
// sensible to run, and the diagnostics have an error.
func (s *Suite) load() (m material, found diag.List) {
	for i, name := range s.Policies {
		found = append(found, s.loadPolicy(&m, name, s.place("policies", i))...)
	}
	for i, name := range s.Exceptions {
		pos := s.place("exceptions", i)
		found = append(found, s.eachFile(name, pos, func(file string, data []byte) diag.List {
			f, ds := policy.Parse(file, data)
			m.exceptions = append(m.exceptions, f.Exceptions...)
			return ds
		})...)
	}
	for i, name := range s.Resources {
		pos := s.place("resources", i)
		found = append(found, s.eachFile(name, pos, func(file string, data []byte) diag.List {
			objects, ds := manifest.Read(file, data)
			m.resources = append(m.resources, objects...)
			return ds
		})...)
	}
	for i, name := range s.TargetResources {
		found = append(found, s.eachFile(name, s.place("targetResources", i), func(file string, data []byte) diag.List {
			objects, ds := manifest.Read(file, data)
			m.existing = append(m.existing, objects...)
			return ds
		})...)
	}
	found = append(found, s.loadObjects(&m, "clusterResources", s.ClusterResources)...)
	found = append(found, s.loadObjects(&m, "paramResources", s.ParamResources)...)
	return m, append(found, s.loadSurroundings(&m)...)
}

// loadObjects reads what rules look up.
func (s *Suite) loadObjects(m *material, key string, names []string) (found diag.List) {
	for i, name := range names {
		found = append(found, s.eachFile(name, s.place(key, i), func(file string, data []byte) diag.List {
			objects, ds := manifest.Read(file, data)
			for _, o := range objects {
				m.objects = append(m.objects, within(o.Value)...)
				ds = append(ds, s.loadDefinitions(m, o)...)
			}
			return ds
		})...)
	}
	return found
}

// loadDefinitions reads the files with definitions that a ClusterResource names: from the
// folder of the suite.
func (s *Suite) loadDefinitions(m *material, o manifest.Object) (found diag.List) {
	spec, _ := o.Value["spec"].(map[string]any)
	names, _ := spec["crds"].([]any)
	if o.Kind() != "ClusterResource" {
		return nil
	}
	for _, one := range names {
		name, _ := one.(string)
		found = append(found, s.eachFile(name, o.Pos, func(file string, data []byte) diag.List {
			objects, ds := manifest.Read(file, data)
			for _, definition := range objects {
				m.definitions = append(m.definitions, definition.Value)
			}
			if m.files == nil {
				m.files = map[string][]byte{}
			}
			m.files[file] = data
			return ds
		})...)
	}
	return found
}

// within are the objects that a ClusterResource lists, or any other object itself.
func within(o map[string]any) []map[string]any {
	if o["kind"] != "ClusterResource" {
		return []map[string]any{o}
	}
	spec, _ := o["spec"].(map[string]any)
	list, _ := spec["resources"].([]any)
	var out []map[string]any
	for _, one := range list {
		if object, ok := one.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

// loadSurroundings reads the files of values, user and context.
func (s *Suite) loadSurroundings(m *material) (found diag.List) {
	m.values = s.Values
	one := func(key, name string, into any) {
		if name == "" {
			return
		}
		pos := s.place(key, 0)
		found = append(found, s.eachFile(name, pos, func(file string, data []byte) diag.List {
			objects, ds := manifest.Read(file, data)
			return append(ds, readOne(diag.Pos{File: file}, objects, into)...)
		})...)
	}
	if s.Variables != "" {
		read := &values{}
		one("variables", s.Variables, read)
		m.values = merged(s.Values, read)
	}
	if s.UserInfo != "" {
		m.user = &userInfo{}
		one("userinfo", s.UserInfo, m.user)
	}
	context := &contextFile{}
	one("context", s.Context, context)
	m.objects = append(m.objects, context.Spec.Resources...)
	m.images = context.Spec.ImageData()
	m.answers = append(m.answers, context.Spec.Answers)
	if m.values != nil {
		m.objects = append(m.objects, m.values.Cluster...)
		m.answers = append(m.answers, m.values.answers)
	}
	m.answers = append(m.answers, s.answers)
	return found
}

// merged are the values of a file, with those that stand in the suite behind.
func merged(inline, file *values) *values {
	if inline == nil {
		return file
	}
	out := *file
	out.Policies = slices.Concat(file.Policies, inline.Policies)
	out.Namespaces = slices.Concat(file.Namespaces, inline.Namespaces)
	out.Cluster = slices.Concat(file.Cluster, inline.Cluster)
	out.Calls = slices.Concat(file.Calls, inline.Calls)
	out.answers.Globals = slices.Concat(file.answers.Globals, inline.answers.Globals)
	out.Globals = map[string]any{}
	for _, m := range []map[string]any{file.Globals, inline.Globals} {
		for k, v := range m {
			out.Globals[k] = v
		}
	}
	return &out
}

func (s *Suite) loadPolicy(m *material, name string, pos diag.Pos) diag.List {
	name, note := s.standIn(name, pos)
	return append(note, s.eachFile(name, pos, func(file string, data []byte) diag.List {
		f, ds := policy.Parse(file, data)
		m.policies = append(m.policies, f.Policies...)
		m.cleanups = append(m.cleanups, f.Cleanups...)
		m.unread = append(m.unread, f.Unread...)
		m.exceptions = append(m.exceptions, f.Exceptions...)
		return append(ds, m.readNative(file, data)...)
	})...)
}

// standIn is the file that takes the place of a policy's file that does not exist:
// policies move and are renamed, and their tests stay. It is the one file in the
// folder that was named which defines a policy that a result names; where there is
// none, or several, nothing takes its place.
func (s *Suite) standIn(name string, pos diag.Pos) (string, diag.List) {
	if s.exists(name) {
		return name, nil
	}
	dir := filepath.Dir(name)
	entries, err := os.ReadDir(s.at(dir))
	if err != nil {
		return name, nil
	}
	var found []string
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		if e.Type().IsRegular() && isYAML(e.Name()) && s.defines(file) {
			found = append(found, file)
		}
	}
	if len(found) != 1 {
		return name, nil
	}
	return found[0], diag.List{diag.Notef(pos, diag.BadSuite, "%s does not exist; %s defines the policy that the results name, and is used instead",
		name, filepath.ToSlash(found[0]))}
}

// defines tells whether a file defines a policy that a result names.
func (s *Suite) defines(file string) bool {
	data, err := readFile(s.at(file))
	if err != nil {
		return false
	}
	f, _ := policy.Parse(file, data)
	return slices.ContainsFunc(f.Policies, func(p *policy.Policy) bool {
		return slices.ContainsFunc(s.Results, func(r Row) bool { return hasName(p, r.Policy) })
	})
}

// hasName tells whether a name is that of a policy, with or without its namespace.
func hasName(p *policy.Policy, name string) bool {
	return name == p.Name || name == p.FullName()
}

func isYAML(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// at is a path of the suite as the system knows it.
func (s *Suite) at(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(s.File), filepath.FromSlash(name))
}

func (s *Suite) exists(name string) bool {
	_, err := os.Stat(s.at(name))
	return err == nil
}

// eachFile reads a file, or the YAML and JSON files of a folder. A folder whose
// name begins with a dot may have lost it: archives and copies leave such out.
func (s *Suite) eachFile(name string, pos diag.Pos, read func(file string, data []byte) diag.List) (found diag.List) {
	if strings.Contains(name, "://") {
		return diag.List{diag.Errorf(pos, diag.BadSuite, "%s is on a network, which kvap does not read; keep a copy beside the suite", name)}
	}
	if !s.exists(name) {
		if plain := withoutDots(name); s.exists(plain) {
			name = plain
		}
	}
	err := filepath.WalkDir(s.at(name), func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir(), file != s.at(name) && !isYAML(file):
			return nil
		}
		data, err := readFile(file)
		if err != nil {
			return err
		}
		found = append(found, read(filepath.ToSlash(file), data)...)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return append(found, diag.Errorf(pos, diag.BadSuite, "%s does not exist; paths are relative to the suite's folder", name))
	}
	if err != nil {
		found = append(found, unreadable(pos, err))
	}
	return found
}

// withoutDots is a path whose folders are not hidden.
func withoutDots(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		if i < len(parts)-1 && strings.HasPrefix(p, ".") && strings.Trim(p, ".") != "" {
			parts[i] = p[1:]
		}
	}
	return strings.Join(parts, "/")
}
