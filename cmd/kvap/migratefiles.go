package main

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
)

// compileFiles reads and compiles the policies of -f and -k.
func (f changeFlags) compileFiles(cmd *cobra.Command) (*compilation, error) {
	sources, unread, err := readSources(f.files, f.kustomize, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	choices, err := defaultChoices()
	if err != nil {
		return nil, err
	}
	done := compileSources(sources, choices)
	done.found = append(done.found, unread...).Sort()
	words := convertFlags{quiet: true}
	if err := words.printDiagnostics(cmd.ErrOrStderr(), done.found, sources, cmd.Root().DisplayName()); err != nil {
		return nil, runtimeError(err)
	}
	if len(done.policies) == 0 {
		return nil, noPolicy(f.files, f.kustomize, done.found)
	}
	return done, nil
}

// namesInFiles are the names of the policies of the files that are also named, or all.
func (f changeFlags) namesInFiles(cmd *cobra.Command, names []string) ([]string, error) {
	done, err := f.compileFiles(cmd)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range done.policies {
		if len(names) == 0 || isNamed(p, names) {
			out = append(out, p.FullName())
		}
	}
	if len(out) == 0 {
		return nil, &exit{exitUsage, errors.New("the files have no policy of that name")}
	}
	return out, nil
}

func isNamed(p *policy.Policy, names []string) bool {
	return slices.Contains(names, p.Name) || slices.Contains(names, p.FullName())
}

// runOffline writes what would be done to the policies of files, and asks no cluster.
func (f changeFlags) runOffline(cmd *cobra.Command, goal migrate.Goal, names []string) error {
	done, err := f.compileFiles(cmd)
	if err != nil {
		return err
	}
	out := report.Handover{Verb: goal.Verb, Folder: f.outputDir}
	var components []migrate.Component
	for _, p := range done.policies {
		if len(names) > 0 && !isNamed(p, names) || p.Invalid {
			continue
		}
		one, made := goal.Offline(worldOf(p, done.rules))
		if slices.ContainsFunc(out.Policies, func(have report.HandedOverPolicy) bool {
			return have.Kind == one.Kind && have.Namespace == one.Namespace && have.Name == one.Name
		}) {
			one.Left, one.Moves, made = "another policy of the files has this name already; give them apart, or remove one", nil, nil
			one.To, one.Way = one.From, ""
		}
		out.Policies, components = append(out.Policies, one), append(components, made...)
	}
	if err := writeComponents(f.outputDir, components); err != nil {
		return runtimeError(err)
	}
	if err := writeHandover(cmd.OutOrStdout(), out, f.output); err != nil {
		return runtimeError(err)
	}
	if done.found.HasErrors() {
		return &exit{code: exitPartly}
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
func writeComponents(dir string, components []migrate.Component) error {
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	defer f.close()
	steps := map[string][]string{}
	for _, c := range components {
		steps[c.Part] = append(steps[c.Part], c.Policy)
		for _, file := range c.Files {
			if err := f.write(path.Join(c.Part, c.Policy, file.Name), file.Data); err != nil {
				return err
			}
		}
	}
	for step, policies := range steps {
		for name := range f.earlier { // of other policies, by other runs
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
		if err := f.write(path.Join(step, "kustomization.yaml"), list); err != nil {
			return err
		}
	}
	return f.finish()
}
