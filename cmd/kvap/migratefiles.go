package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/internal/convert"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/folder"
	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
)

// compileFiles reads and compiles the policies of -f and -k.
func (f changeFlags) compileFiles(cmd *cobra.Command) (*convert.Compilation, error) {
	sources, unread, err := input.Sources(f.files, f.kustomize, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	choices, err := convert.DefaultFlags().Choices()
	if err != nil {
		return nil, err
	}
	done := convert.Compile(sources, choices)
	done.Found = append(done.Found, unread...).Sort()
	if err := (viewFlags{quiet: true}).say(cmd, done.Found, sources); err != nil {
		return nil, err
	}
	if done.Empty() {
		return nil, noPolicyToMove(f.files, f.kustomize)
	}
	return done, nil
}

// leftUnread are the policies of the files that kvap does not read, and that are left
// where they are. Those who name policies, or choose them by labels, did not mean them.
func (f changeFlags) leftUnread(done *convert.Compilation, names []string) (left []report.HandedOverPolicy) {
	if len(names) > 0 || f.selector != "" {
		return nil
	}
	for _, u := range done.Unread {
		left = append(left, report.HandedOverPolicy{Kind: u.Kind, Namespace: u.Namespace, Name: u.Name, From: stageOutside, To: stageOutside, Left: u.Reason})
	}
	return left
}

// stageOutside is the stage of what no record is about.
const stageOutside = "none"

// noPolicyToMove says that there is nothing to do.
func noPolicyToMove(files []string, kustomize string) error {
	return exit.Usage(fmt.Errorf("there is no policy in %s", input.Names(files, kustomize)))
}

// namesInFiles are the names of the policies of the files that are meant, and what is
// left of the files.
func (f changeFlags) namesInFiles(cmd *cobra.Command, names []string) (out []string, left []report.HandedOverPolicy, err error) {
	done, err := f.compileFiles(cmd)
	if err != nil {
		return nil, nil, err
	}
	if len(done.Policies) == 0 {
		return nil, nil, noPolicyToMove(f.files, f.kustomize)
	}
	chosen, err := f.chosenOf(done.Policies, names)
	for _, p := range chosen {
		out = append(out, p.FullName())
	}
	return out, f.leftUnread(done, names), err
}

// chosenOf are the policies that are named, or have the labels of -l; else all. A name
// that none has is an error: what it was meant for would be left behind in silence.
func (f changeFlags) chosenOf(policies []*policy.Policy, names []string) (out []*policy.Policy, err error) {
	selector, err := f.labels()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(policies, func(p *policy.Policy) bool { return isNamed(p, name) }) {
			return nil, exit.Usage(fmt.Errorf("the files have no policy %s", name))
		}
	}
	for _, p := range policies {
		named := len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return isNamed(p, name) })
		if named && selector.Matches(labels.Set(objectOf(p).GetLabels())) {
			out = append(out, p)
		}
	}
	if len(out) == 0 && len(policies) > 0 {
		return nil, exit.Usage(fmt.Errorf("no policy of the files has the labels %s", f.selector))
	}
	return out, nil
}

func isNamed(p *policy.Policy, name string) bool { return name == p.Name || name == p.FullName() }

// runOffline writes what would be done to the policies of files, and asks no cluster.
func (f changeFlags) runOffline(cmd *cobra.Command, goal migrate.Goal, names []string) error {
	if f.dryRun == "server" {
		return errors.New("--dry-run=server asks a cluster, and with -f and --output-dir none is asked")
	}
	done, err := f.compileFiles(cmd)
	if err != nil {
		return err
	}
	chosen, err := f.chosenOf(done.Policies, names)
	if err != nil {
		return err
	}
	out := report.Handover{Verb: goal.Verb, Folder: f.outputDir}
	var components []migrate.Component
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
	out.Policies = append(out.Policies, f.leftUnread(done, names)...)
	if f.dryRun != "none" {
		out.Dry = f.dryRun
	} else if err := writeComponents(f.outputDir, components, f.force); err != nil {
		return exit.Runtime(err)
	}
	if err := writeAs(cmd.OutOrStdout(), f.output, out); err != nil {
		return exit.Runtime(err)
	}
	if done.Found.HasErrors() {
		return exit.Partly(nil)
	}
	return handoverVerdict(out)
}

// worldOf is a policy of a file before anything was done.
func worldOf(p *policy.Policy, rules []*compile.Rule) migrate.World {
	group, _, _ := strings.Cut(p.APIVersion, "/")
	ref := v1alpha1.PolicyReference{Group: group, Kind: p.Kind, Name: p.Name}
	if p.Namespaced() {
		ref.Namespace = p.Namespace
	}
	w := migrate.World{Now: time.Now(), Name: controller.TranslationName(ref), Ref: ref, Source: objectOf(p)}
	for _, r := range rules {
		if r.Policy == p && (r.Target == translate.Unsupported || r.NotServed() != "") {
			w.Staying = append(w.Staying, r.Name())
		}
	}
	return w
}

// objectOf is a policy as an object.
func objectOf(p *policy.Policy) *unstructured.Unstructured {
	data, err := json.Marshal(p.Source.Value())
	if err != nil {
		panic(err) // it came from YAML
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &o.Object); err != nil {
		panic(err) // it was made a moment ago
	}
	if p.Namespaced() {
		o.SetNamespace(p.Namespace)
	}
	return o
}

// writeComponents writes components into a folder, with one above for each step that
// has those of all policies.
func writeComponents(dir string, components []migrate.Component, force bool) error {
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
