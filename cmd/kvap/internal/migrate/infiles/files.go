package infiles

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/folder"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
)

// A Choice says which policies of files are meant: those that are named, or have the
// labels; else all.
type Choice struct {
	Names    []string
	Selector string
}

// Steps are what would be done to the policies of files before anything was done, and the
// components that do it.
func Steps(done *convert.Compilation, goal migrate.Goal, c Choice) (out report.Handover, components []migrate.Component, err error) {
	chosen, err := c.Of(done.Policies)
	if err != nil {
		return out, nil, err
	}
	out.Verb = goal.Verb
	for _, p := range chosen {
		if p.Invalid { // the diagnostics say why
			continue
		}
		one, made := goal.Offline(worldOf(p, done.Rules))
		if slices.ContainsFunc(out.Policies, func(have report.HandedOverPolicy) bool {
			return have.Kind == one.Kind && have.Namespace == one.Namespace && have.Name == one.Name
		}) {
			one.Left, one.Moves, made = "another policy of the files has this name already; give them apart, or remove one", nil, nil
			one.To, one.Way = one.From, ""
		}
		out.Policies, components = append(out.Policies, one), append(components, made...)
	}
	out.Policies = append(out.Policies, c.LeftUnread(done)...)
	return out, components, nil
}

// Of are the policies that are named, or have the labels of -l; else all. A name
// that none has is an error: what it was meant for would be left behind in silence.
func (c Choice) Of(policies []*policy.Policy) (out []*policy.Policy, err error) {
	selector, err := labels.Parse(c.Selector)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("-l %s: %w", c.Selector, err))
	}
	for _, name := range c.Names {
		if !slices.ContainsFunc(policies, func(p *policy.Policy) bool { return isNamed(p, name) }) {
			return nil, exit.Usage(fmt.Errorf("the files have no policy %s", name))
		}
	}
	for _, p := range policies {
		named := len(c.Names) == 0 || slices.ContainsFunc(c.Names, func(name string) bool { return isNamed(p, name) })
		if named && selector.Matches(labels.Set(objectOf(p).GetLabels())) {
			out = append(out, p)
		}
	}
	if len(out) == 0 && len(policies) > 0 {
		return nil, exit.Usage(fmt.Errorf("no policy of the files has the labels %s", c.Selector))
	}
	return out, nil
}

func isNamed(p *policy.Policy, name string) bool { return name == p.Name || name == p.FullName() }

// LeftUnread are the policies of the files that kvap does not read, and that are left
// where they are. Those who name policies, or choose them by labels, did not mean them.
func (c Choice) LeftUnread(done *convert.Compilation) (left []report.HandedOverPolicy) {
	if len(c.Names) > 0 || c.Selector != "" {
		return nil
	}
	for _, u := range done.Unread {
		none := string(v1alpha1.StageNone) // for no record is about it
		left = append(left, report.HandedOverPolicy{Kind: u.Kind, Namespace: u.Namespace, Name: u.Name, From: none, To: none, Left: u.Reason})
	}
	return left
}

// worldOf is a policy of a file before anything was done.
func worldOf(p *policy.Policy, rules []*compile.Rule) migrate.PolicyState {
	group, _, _ := strings.Cut(p.APIVersion, "/")
	ref := v1alpha1.PolicyReference{Group: group, Kind: p.Kind, Namespace: p.Within(), Name: p.Name}
	w := migrate.PolicyState{Now: time.Now(), Name: controller.TranslationName(ref), Ref: ref, Source: objectOf(p)}
	for _, r := range rules {
		if r.Policy == p && (r.Target == translate.Unsupported || r.NotServed() != "") {
			w.Staying = append(w.Staying, r.Name())
		}
	}
	return w
}

// objectOf is a policy as an object.
func objectOf(p *policy.Policy) *unstructured.Unstructured {
	o := migrate.ObjectOf(p.Source)
	if p.Namespaced() {
		o.SetNamespace(p.Namespace)
	}
	return o
}

// WriteComponents writes components into a folder, with one above for each step that
// has those of all policies.
func WriteComponents(dir string, components []migrate.Component, force bool) error {
	f, err := folder.Open(dir, nil)
	if err != nil {
		return err
	}
	defer f.Close()
	steps := map[string][]string{}
	for _, c := range components {
		steps[c.Part] = append(steps[c.Part], c.Policy)
		for _, file := range c.Files {
			f.Add(path.Join(c.Part, c.Policy, file.Name), file.Data)
		}
	}
	for step, policies := range steps {
		for name := range f.Before() { // of other policies, by other runs
			if in, policy, _ := strings.Cut(path.Dir(name), "/"); in == step && policy != "" {
				policies = append(policies, policy)
			}
		}
		slices.Sort(policies)
		list, err := yaml.Marshal(map[string]any{
			"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", "components": slices.Compact(policies),
		})
		if err != nil {
			return err
		}
		f.Add(path.Join(step, "kustomization.yaml"), list)
	}
	if _, err := f.Write(force); err != nil {
		return err
	}
	return f.Finish()
}

// An Adopted is what files become once their policies are of kvap's kinds.
type Adopted struct {
	Handover report.Handover
	Already  int               // policies that are of kvap's kinds
	changed  map[string][]byte // by where it is written
	sources  []input.Source
}

// Adopt changes apiVersion of the policies in files, which are to be written where they
// were, or into a folder.
func Adopt(sources []input.Source, folder string) (Adopted, error) {
	out := Adopted{Handover: report.Handover{Verb: migrate.Adopt, Folder: folder}, changed: map[string][]byte{}, sources: sources}
	for _, s := range sources {
		adopted, err := migrate.AdoptFile(s.Name, s.Data)
		if err != nil {
			return out, err
		}
		out.Already += len(adopted.Already)
		out.Handover.Policies = append(out.Handover.Policies, adoptedOf(s.Name, adopted)...)
		if !bytes.Equal(adopted.Data, s.Data) || folder != "" && len(adopted.Policies) > 0 {
			name := s.Name
			if folder != "" {
				name = filepath.ToSlash(s.Below)
			}
			out.changed[name] = adopted.Data
		}
	}
	return out, nil
}

// adoptedOf says what became of the policies of a file.
func adoptedOf(file string, a migrate.Adoption) (out []report.HandedOverPolicy) {
	row := func(p *policy.Policy) report.HandedOverPolicy {
		return report.HandedOverPolicy{Kind: p.Kind, Namespace: p.Within(), Name: p.Name, From: "file", To: "file"}
	}
	for _, p := range a.Policies {
		one := row(p)
		one.To = string(v1alpha1.StageAdopted)
		one.Moves = []report.HandoverMove{{Does: "apiVersion: " + v1alpha1.GroupVersion().String() + " in " + file}}
		out = append(out, one)
	}
	for _, p := range a.Left {
		one := row(p)
		one.Left = "kvap.dev has no kind that it could become; it stays as it is"
		out = append(out, one)
	}
	return out
}

// Write writes files where they were, or into the folder.
func (a Adopted) Write(force bool) error {
	if a.Handover.Folder == "" {
		for name, data := range a.changed {
			info, err := os.Stat(name)
			if err != nil {
				return input.PathError(err)
			}
			if err := os.WriteFile(name, data, info.Mode().Perm()); err != nil {
				return input.PathError(err)
			}
		}
		return nil
	}
	to, err := folder.Open(a.Handover.Folder, a.sources)
	if err != nil {
		return err
	}
	defer to.Close()
	for name, data := range a.changed {
		to.Add(name, data)
	}
	if _, err := to.Write(force); err != nil {
		return err
	}
	return to.Finish()
}
