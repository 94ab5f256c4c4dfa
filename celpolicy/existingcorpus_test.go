package celpolicy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// The rules with targets of public policies change the same objects in both forms, for the objects of
// their tests: created, updated and deleted.
func TestTargetsOfCorpus(t *testing.T) {
	const corpus = "../../shared/corpus"
	if _, err := os.Stat(corpus); err != nil {
		t.Skip("the corpus is not beside the repository")
	}
	schemas := generatingSchemas(t)
	rules, converted, requests, triggered, changed := 0, 0, 0, 0, 0
	for _, part := range []string{"mutate", "cli", "conformance"} {
		for dir, files := range foldersOf(t, filepath.Join(corpus, part)) {
			objects := objectsIn(files)
			for name, text := range files {
				if file, _ := policy.Parse(name, text); !slices.ContainsFunc(file.Policies, changesOthers) {
					continue
				}
				c := retargeted(t, text, schemas)
				for _, r := range c.compiled.Rules {
					if r.Source == nil || r.Source.Mutate == nil || !r.Source.Mutate.Existing {
						continue
					}
					rules++
					if why, left := c.Left[r]; left || len(r.Existing) == 0 {
						t.Logf("left: %s %s: %v %s%s", strings.TrimPrefix(filepath.Join(dir, name), corpus), r.Name(), r.Codes, r.Reason, why.Message)
						continue
					}
					converted++
				}
				for _, p := range c.made {
					checkTypes(t, p)
				}
				all := triggeringRequests(schemas, objects)
				requests += len(all)
				x, y := c.compareTargets(t, judge.World(standing(objects), schemas), all)
				triggered, changed = triggered+x, changed+y
			}
		}
	}
	t.Logf("%d of %d rules with targets are converted; %d of %d requests trigger them, and %d objects change", converted, rules, triggered, requests, changed)
	if converted < 10 {
		t.Errorf("%d rules are converted", converted)
	}
}

func changesOthers(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool { return r.Mutate != nil && r.Mutate.Existing })
}

// Whatever a target says of namespace, name and labels, both find the same objects.
func TestTargetSelections(t *testing.T) {
	schemas := generatingSchemas(t)
	world, objects := targetWorld(t, schemas)
	requests := triggeringRequests(schemas, objects)
	namespaces := []string{"", "dev", "*", "p?od", "{{ request.namespace }}", "{{ request.object.metadata.namespace }}", "{{ request.object.data.where }}", "{{ request.object.data.where || 'dev' }}", "{{ request.object.metadata.labels.tier }}"}
	names := []string{"", "two", "t*", "{{ request.object.metadata.name }}", "{{ request.name }}", "{{ request.object.data.name }}", "{{ request.object.data.name || '*' }}", "t{{ request.object.data.empty || 'wo' }}"}
	selectors := []string{"", "matchLabels: {pick: \"yes\"}", "matchLabels: {pick: \"{{ request.object.metadata.labels.pick }}\"}", "matchExpressions: [{key: pick, operator: NotIn, values: [\"no\"]}]"}
	tried, converted, changed := 0, 0, 0
	for _, kind := range []string{"ClusterPolicy", "Policy"} {
		for _, of := range []string{"ConfigMap", "Node"} {
			for _, namespace := range namespaces {
				for _, name := range names {
					for _, selector := range selectors {
						if tried++; tried%everySelection != 0 {
							continue
						}
						c := retargeted(t, []byte(targetRule(kind, fmt.Sprintf("match: {any: [{resources: {kinds: [ConfigMap]}}]}\nmutate:\n  targets: [{apiVersion: v1, kind: %s, namespace: %q, name: %q, selector: {%s}}]\n"+
							"  patchStrategicMerge: {metadata: {annotations: {by: '{{ request.object.metadata.name }}'}}}\n", of, namespace, name, selector))), schemas)
						if before, _ := c.onlyTargets(); len(before) > 0 {
							converted++
						}
						_, more := c.compareTargets(t, world, requests)
						if changed += more; t.Failed() {
							t.Fatalf("%s %s %q %q %s", kind, of, namespace, name, selector)
						}
					}
				}
			}
		}
	}
	t.Logf("%d of %d are converted, and %d objects change", converted, tried/everySelection, changed)
	if converted < 50 || changed < 300 {
		t.Errorf("%d are converted, and %d objects change", converted, changed)
	}
}

// everySelection is which of the selections are tried: all take long.
const everySelection = 5

// The patches of public mutate rules, on targets in the place of the request's object, do the same to the
// objects of their tests.
func TestPatchesOfCorpusOnTargets(t *testing.T) {
	const corpus = "../../shared/corpus"
	if _, err := os.Stat(corpus); err != nil {
		t.Skip("the corpus is not beside the repository")
	}
	schemas := generatingSchemas(t)
	trigger := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "trigger", "namespace": "dev", "labels": map[string]any{"app": "web"}}, "data": map[string]any{"k": "v"}}
	podOf := map[string]bool{"Pod": true, "Deployment": true, "DaemonSet": true, "StatefulSet": true, "ReplicaSet": true, "Job": true, "CronJob": true}
	rules, converted, changed := 0, 0, 0
	for _, part := range []string{"mutate", "cli", "conformance"} {
		for dir, files := range foldersOf(t, filepath.Join(corpus, part)) {
			valid := slices.DeleteFunc(objectsIn(files), func(o map[string]any) bool {
				text := textOf(t, o)
				return strings.Contains(text, `name: ""`) || podOf[fmt.Sprint(o["kind"])] && !strings.Contains(text, "containers:")
			})
			world := judge.World(standing(append(valid, trigger)), schemas)
			for name, text := range files {
				file, _ := policy.Parse(name, text)
				for _, p := range file.Policies {
					for _, r := range p.Rules {
						text := onTargets(schemas, r)
						if text == "" {
							continue
						}
						rules++
						c := retargeted(t, []byte(text), schemas)
						if before, _ := c.onlyTargets(); len(before) == 0 {
							continue
						}
						converted++
						for _, p := range c.made {
							checkTypes(t, p)
						}
						_, more := c.compareTargets(t, world, triggeringRequests(schemas, []map[string]any{trigger})[:1])
						if changed += more; t.Failed() {
							t.Fatalf("%s\n%s", filepath.Join(dir, name), text)
						}
					}
				}
			}
		}
	}
	t.Logf("%d of %d mutate rules are converted on targets, and %d objects change", converted, rules, changed)
	if converted < 40 || changed < 40 {
		t.Errorf("%d rules are converted, and %d objects change", converted, changed)
	}
}

// onTargets is a mutate rule that changes what exists of the kinds that it is about; "" of another.
func onTargets(schemas *schema.Set, r *policy.Rule) string {
	if r.Mutate == nil || r.Mutate.Existing || r.Match == nil {
		return ""
	}
	body, err := yaml.YAMLToJSON(policy.Marshal(r.Source.Get("mutate")))
	if err != nil {
		return ""
	}
	var mutate map[string]any
	if yaml.Unmarshal(body, &mutate) != nil {
		return ""
	}
	var targets []any
	for _, f := range r.Match.Filters() {
		for _, k := range f.Kinds {
			s, ok := policy.ParseKind(k.Value)
			if !ok || s.Subresource != "" {
				continue
			}
			if known := schemas.Resources(s.Group, s.Version, s.Kind); len(known) > 0 && !known[0].Guessed {
				target := map[string]any{"apiVersion": known[0].APIVersion(), "kind": known[0].Kind}
				if n := r.Source.Get("preconditions"); n != nil {
					var preconditions any
					if yaml.Unmarshal(policy.Marshal(n), &preconditions) == nil {
						target["preconditions"] = preconditions
					}
				}
				targets = append(targets, target)
			}
		}
	}
	if len(targets) == 0 {
		return ""
	}
	mutate["targets"] = targets
	written, err := yaml.Marshal(map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "p"},
		"spec": map[string]any{"rules": []any{map[string]any{
			"name": "r", "match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"ConfigMap"}}}}}, "mutate": mutate,
		}}},
	})
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(written), "request.object", "target")
}
