package main

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/migrate/evidence"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A compareSetting is what is compared, as of one moment: policies, the native
// objects in their place, and what both look up.
type compareSetting struct {
	policies   []*policy.Policy
	exceptions []*policy.Exception
	excepting  []unstructured.Unstructured // the same, and those that do not count
	found      diag.List                   // of reading them
	sources    []source
	deployed   judge.Deployed
	natives    []evidence.Native
	known      []map[string]any
	schemas    *schema.Set
	compared   []comparedPolicy // those of a cluster
	silent     string           // since when Kyverno is, where it is not alive
	mark       string           // another one where policies or native objects are others
}

// A comparedPolicy is a policy of a cluster whose comparison is recorded.
type comparedPolicy struct {
	name   string // with its namespace
	object unstructured.Unstructured
	digest string // of it, and of what is around it
}

// judges compiles what is compared.
func (s *compareSetting) judges(c choices) (*judge.Judges, error) {
	c.rewrite(s.policies)
	return judge.Compile(compile.Input{Policies: s.policies, Exceptions: s.exceptions, Found: s.found},
		compile.Options{Translate: c.translate}, judge.Cluster{Objects: s.known, Deployed: s.deployed})
}

// A selection is which policies are compared.
type selection struct {
	names     []string // NAME or NAMESPACE/NAME; all where there are none
	labels    labels.Selector
	namespace string // of the policies that are named without one
	every     bool   // namespace, where none is named
}

// means tells whether a name is that of a policy.
func (s selection) means(name string, p *policy.Policy) bool {
	return name == p.FullName() || name == p.Name && p.Namespaced() && p.Namespace == s.namespace
}

func (s selection) takes(p *policy.Policy) bool {
	if len(s.names) > 0 {
		return slices.ContainsFunc(s.names, func(name string) bool { return s.means(name, p) })
	}
	return (s.every || !p.Namespaced() || p.Namespace == s.namespace) && s.labels.Matches(labelsOf(p))
}

func labelsOf(p *policy.Policy) labels.Set {
	out := labels.Set{}
	if node := p.Source.Get("metadata").Get("labels"); node != nil {
		values, _ := node.Value().(map[string]any)
		for key, value := range values {
			out[key], _ = value.(string)
		}
	}
	return out
}

// limit leaves only the policies of a selection, and their native objects.
func (s *compareSetting) limit(to selection) error {
	for _, name := range to.names {
		if !slices.ContainsFunc(s.policies, func(p *policy.Policy) bool { return to.means(name, p) }) {
			return fmt.Errorf("there is no policy %s; policies are named as NAME or NAMESPACE/NAME", name)
		}
	}
	kept := map[string]bool{}
	s.policies = slices.DeleteFunc(s.policies, func(p *policy.Policy) bool {
		kept[p.FullName()] = kept[p.FullName()] || to.takes(p)
		return !to.takes(p)
	})
	s.compared = slices.DeleteFunc(s.compared, func(p comparedPolicy) bool { return !kept[p.name] })
	if len(s.policies) == 0 {
		return errors.New("no policy is chosen; -A takes those of all namespaces")
	}
	return nil
}

// ownNatives leaves only native objects that were made from the policies: those of
// others have nothing to be held against. They are kept as natives, for the log speaks
// of what is in the cluster.
func (s *compareSetting) ownNatives() {
	var own judge.Deployed
	for _, p := range s.deployed.Policies {
		native := evidence.Native{Policy: p, LeftOut: s.deployed.LeftOut(p.Name), Since: lastWritten(p)}
		s.natives = append(s.natives, native)
		if !slices.ContainsFunc(s.policies, func(source *policy.Policy) bool { return slices.Contains(s.deployed.Sources(p), source.FullName()) }) {
			continue
		}
		own.Policies = append(own.Policies, p)
		for _, b := range s.deployed.Bindings {
			if b.Spec.PolicyName == p.Name {
				own.Bindings = append(own.Bindings, b)
			}
		}
	}
	s.deployed = own
}

// settingOfFiles reads policies and native objects from files.
func (c *comparing) settingOfFiles() (*compareSetting, error) {
	f := c.flags
	read, err := readPolicies(f.files, f.kustomize, c.stdin, c.choices.translate.Release)
	if err != nil {
		return nil, err
	}
	s := &compareSetting{
		policies: read.policies, exceptions: read.exceptions, found: read.found, sources: read.sources,
		deployed: read.deployed, known: read.params, schemas: c.choices.translate.Schemas,
	}
	if read.empty() {
		return nil, noPolicy(f.files, f.kustomize, nil)
	}
	return s, c.readKnown(s)
}

// readKnown reads what rules look up, from files.
func (c *comparing) readKnown(s *compareSetting) error {
	objects, sources, found, err := readManifests("--param", c.flags.param, c.stdin)
	if err != nil {
		return err
	}
	s.sources, s.found = append(s.sources, sources...), append(s.found, found...)
	for _, o := range objects {
		s.known = append(s.known, contextObjects(o.Value)...)
	}
	return nil
}

// readFiles reads the objects of some paths.
func (c *comparing) readFiles(flag string, paths []string) ([]manifest.Object, error) {
	objects, sources, found, err := readManifests(flag, paths, c.stdin)
	c.tell(found...)
	c.setting.sources = append(c.setting.sources, sources...)
	return objects, err
}
