package main

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	flags := choiceFlags{}
	flags.add(pflag.NewFlagSet("", pflag.ContinueOnError))
	choices, err := flags.choices()
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
	goal.Unrecorded = true
	out := report.Handover{Verb: goal.Verb, Folder: f.outputDir}
	var components []migrate.Component
	for _, p := range done.policies {
		if len(names) > 0 && !isNamed(p, names) || p.Invalid {
			continue
		}
		one, made := offlinePolicy(p, done.rules, goal)
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

// offlinePolicy is what becomes of a policy of a file.
func offlinePolicy(p *policy.Policy, rules []*compile.Rule, goal migrate.Goal) (report.HandedOverPolicy, []migrate.Component) {
	group, _, _ := strings.Cut(p.APIVersion, "/")
	ref := v1alpha1.PolicyReference{Group: group, Kind: p.Kind, Name: p.Name}
	if p.Namespaced() {
		ref.Namespace = p.Namespace
	}
	out := report.HandedOverPolicy{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, From: string(v1alpha1.StageNone), To: string(v1alpha1.StageNone)}
	w := migrate.World{Now: time.Now(), Name: controller.TranslationName(ref), Ref: ref, Source: objectOf(p)}
	for _, r := range rules {
		if r.Policy == p && (r.Target == translate.Unsupported || r.NotServed() != "") {
			w.Staying = append(w.Staying, r.Name())
		}
	}
	if goal.Verb == migrate.Rollback {
		w, goal.Way = enforced(w, goal.Way), ""
	}
	left := func(err error) (report.HandedOverPolicy, []migrate.Component) {
		out.Left = err.Error()
		return out, nil
	}
	if goal.Verb == migrate.Enforce && goal.Way == "" {
		way, err := migrate.WayFor(w)
		if err != nil {
			return left(err)
		}
		goal.Way = way
	}
	moves, err := goal.Moves(w)
	if err != nil {
		return left(err)
	}
	components, err := migrate.Components(w, moves)
	if err != nil {
		return left(err)
	}
	for _, m := range moves {
		if m.Record == nil {
			out.Moves = append(out.Moves, report.HandoverMove{Does: m.Does, Part: m.Part})
		}
	}
	out.To, out.Way = string(stageAfter(moves)), wayOf(moves)
	return out, components
}

// enforced is the world after the steps of enforce, where a repository has them: the
// way back begins there, and ends at what the files have. A policy that enforce leaves
// alone is where it was.
func enforced(w migrate.World, way v1alpha1.MigrationWay) migrate.World {
	goal := migrate.Goal{Verb: migrate.Enforce, Way: way, Accept: "it is enforced"}
	if way == "" {
		var err error
		if goal.Way, err = migrate.WayFor(w); err != nil {
			return w
		}
	}
	moves, err := goal.Moves(w)
	if err != nil {
		return w
	}
	return w.After(moves)
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

// writeComponents writes what would be done to the policies of a cluster.
func (h *handover) writeComponents(dir string) error {
	var all []migrate.Component
	for _, t := range h.tasks {
		if t.done {
			continue
		}
		moves, err := t.goal.Moves(*h.first[t.name])
		if err != nil {
			return err // it was planned
		}
		components, err := migrate.Components(*h.first[t.name], moves)
		if err != nil {
			return err
		}
		all = append(all, components...)
	}
	return writeComponents(dir, all)
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
