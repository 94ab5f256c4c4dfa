package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kvap/kvap/policy"
)

type indexEntry struct {
	Dir   string
	Cases int
	Rules []struct {
		Rule     string
		Verdicts map[string]int
	}
}

func corpusIndex(t *testing.T) []indexEntry {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(corpus(t), "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index struct{ Policies []indexEntry }
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatal(err)
	}
	return index.Policies
}

// The index names each rule that gave a verdict, as Kyverno's engine expanded it.
func TestExpandAsInCorpus(t *testing.T) {
	for _, entry := range corpusIndex(t) {
		data, err := os.ReadFile(filepath.Join(corpus(t), "policies", entry.Dir, "policy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		f, _ := policy.Parse("policy.yaml", data)
		got := names(policy.Expand(f.Policies[0]))
		var want []string
		for _, rule := range entry.Rules {
			want = append(want, rule.Rule)
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-index +expanded):\n%s", entry.Dir, d)
		}
	}
}

func names(rules []*policy.Rule) (names []string) {
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

// A policy of some rules, in the shortest form.
func rules(annotation string, rules ...string) string {
	text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata:\n  name: p\n"
	if annotation != "" {
		text += "  annotations: {pod-policies.kyverno.io/autogen-controllers: '" + annotation + "'}\n"
	}
	text += "spec:\n  rules:\n"
	for _, r := range rules {
		text += "    - {" + r + "}\n"
	}
	return text
}

const (
	podMatch = "match: {any: [{resources: {kinds: [Pod]}}]}"
	check    = "validate: {pattern: {spec: {x: 1}}}"
)

// A policy is expanded as a whole or not at all.
func TestEligibility(t *testing.T) {
	filter := func(block, form, filter string) string {
		if form == "legacy" {
			return block + ": {" + filter + "}"
		}
		return block + ": {" + form + ": [{" + filter + "}]}"
	}
	both := []string{"a", "autogen-a", "autogen-cronjob-a"}
	cases := []struct {
		name  string
		rules []string
		want  []string
	}{
		{"any", []string{"name: a, " + podMatch + ", " + check}, both},
		{"all", []string{"name: a, " + filter("match", "all", "resources: {kinds: [Pod]}") + ", " + check}, both},
		{"legacy", []string{"name: a, " + filter("match", "legacy", "resources: {kinds: [Pod]}") + ", " + check}, both},
		{"namespaces", []string{"name: a, " + filter("match", "any", "resources: {kinds: [Pod], namespaces: [x], operations: [CREATE], namespaceSelector: {}}, subjects: [{kind: User, name: x}]") + ", " + check}, both},
		{"version only", []string{"name: a, " + filter("match", "any", "resources: {kinds: [v1/Pod]}") + ", " + check}, []string{"a"}},
		{"version beside the word", []string{
			"name: a, " + filter("match", "any", "resources: {kinds: [v1/Pod]}") + ", " + check,
			"name: b, " + filter("match", "any", "resources: {kinds: [Deployment]}") + ", " + check,
		}, []string{"a", "b", "autogen-a", "autogen-cronjob-a"}},
		{"two kinds", []string{"name: a, " + filter("match", "any", "resources: {kinds: [Pod, Service]}") + ", " + check}, []string{"a"}},
		{"two kinds, one Pod with its version", []string{"name: a, " + filter("match", "any", "resources: {kinds: [v1/Pod, Deployment]}") + ", " + check}, []string{"a"}},
		{"two kinds without Pod", []string{
			"name: a, " + podMatch + ", " + check,
			"name: b, " + filter("match", "any", "resources: {kinds: [Service, Deployment]}") + ", " + check,
		}, []string{"a", "b", "autogen-a", "autogen-cronjob-a"}},
		{"two filters", []string{"name: a, match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Service]}}]}, " + check}, both},
		{"name", []string{"name: a, " + podMatch + ", " + check, "name: b, " + filter("match", "any", "resources: {kinds: [Service], name: x}") + ", " + check}, []string{"a", "b"}},
		{"empty name", []string{"name: a, " + filter("match", "any", "resources: {kinds: [Pod], name: ''}") + ", " + check}, both},
		{"names", []string{"name: a, " + filter("match", "any", "resources: {kinds: [Pod], names: [x]}") + ", " + check}, []string{"a"}},
		{"selector", []string{"name: a, " + filter("match", "all", "resources: {kinds: [Pod], selector: {}}") + ", " + check}, []string{"a"}},
		{"annotations", []string{"name: a, " + filter("match", "legacy", "resources: {kinds: [Pod], annotations: {a: b}}") + ", " + check}, []string{"a"}},
		{"excluded name", []string{"name: a, " + podMatch + ", " + filter("exclude", "any", "resources: {name: x}") + ", " + check}, []string{"a"}},
		{"excluded namespaces", []string{"name: a, " + podMatch + ", " + filter("exclude", "any", "resources: {namespaces: [x]}") + ", " + check}, both},
		{"excluded kinds without Pod", []string{"name: a, " + podMatch + ", " + filter("exclude", "any", "resources: {kinds: [Service]}") + ", " + check}, []string{"a"}},
		{"excluded Pods", []string{"name: a, " + podMatch + ", " + filter("exclude", "any", "resources: {kinds: [Pod], namespaces: [x]}") + ", " + check}, both},
		{"generate", []string{"name: a, " + podMatch + ", " + check, "name: b, " + podMatch + ", generate: {apiVersion: v1, kind: A, name: b, data: {a: b}}"}, []string{"a", "b"}},
		{"json patch", []string{"name: a, " + podMatch + ", " + check, "name: b, " + podMatch + ", mutate: {patchesJson6902: a}"}, []string{"a", "b"}},
		{"json patch in foreach", []string{"name: a, " + podMatch + ", mutate: {foreach: [{list: a, patchesJson6902: a}]}"}, []string{"a"}},
		{"json patch in a foreach within", []string{"name: a, " + podMatch + ", mutate: {foreach: [{list: a, foreach: [{list: b, patchesJson6902: a}]}]}"}, []string{"a"}},
		{"targets", []string{"name: a, " + podMatch + ", mutate: {targets: [], patchStrategicMerge: {a: b}}", "name: b, " + podMatch + ", " + check}, []string{"a", "b", "autogen-b", "autogen-cronjob-b"}},
		{"merge patch", []string{"name: a, " + podMatch + ", mutate: {patchStrategicMerge: {a: b}}"}, both},
		{"images", []string{"name: a, " + podMatch + ", verifyImages: [{mutateDigest: false, imageReferences: ['*']}]"}, both},
		{"manifests", []string{"name: a, " + podMatch + ", validate: {manifests: {attestors: [{entries: []}]}}"}, []string{"a"}},
		{"named as generated", []string{"name: autogen-a, " + podMatch + ", " + check, "name: b, " + podMatch + ", " + check}, []string{"autogen-a", "b", "autogen-b", "autogen-cronjob-b"}},
		{"other kinds", []string{"name: a, " + filter("match", "any", "resources: {kinds: [Deployment]}") + ", " + check}, []string{"a"}},
		{"invalid", []string{"name: a, " + podMatch + ", " + check, "name: b, " + podMatch + ", validate: {patern: {}}"}, []string{"a", "b", "autogen-a", "autogen-cronjob-a"}},
		{"long names", []string{"name: a23456789012345678901234567890123456789012345678901234567890123, " + podMatch + ", " + check}, []string{
			"a23456789012345678901234567890123456789012345678901234567890123",
			"autogen-a234567890123456789012345678901234567890123456789012345",
			"autogen-cronjob-a2345678901234567890123456789012345678901234567",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, _ := policy.Parse("p.yaml", []byte(rules("", c.rules...)))
			if d := cmp.Diff(c.want, names(policy.Expand(f.Policies[0]))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// What the engine evaluates depends on the kind and on the annotation's exact text.
func TestRulesFor(t *testing.T) {
	all := map[string][]string{
		"Pod": {"a", "autogen-x"}, "Service": {"a", "autogen-x"}, "Deployment": {"a", "autogen-a"}, "ReplicaSet": {"a", "autogen-a"},
		"CronJob": {"a", "autogen-cronjob-a"}, "CloneSet": {"a", "autogen-x"},
	}
	none := []string{"a", "autogen-x"}
	cases := []struct {
		annotation string
		want       map[string][]string
	}{
		{"", all},
		{"none", map[string][]string{"Pod": none, "Deployment": none, "CronJob": none}},
		{"Deployment,CronJob", map[string][]string{"Deployment": {"a", "autogen-a"}, "CronJob": {"a", "autogen-cronjob-a"}, "Job": none}},
		{"Deployment, CronJob", map[string][]string{"Deployment": {"a", "autogen-a"}, "CronJob": none}},
		{"CronJob", map[string][]string{"Deployment": none, "CronJob": {"a", "autogen-cronjob-a"}}},
		{"CloneSet", map[string][]string{"Deployment": none, "CloneSet": {"a", "autogen-a"}}},
		{"all", map[string][]string{"Deployment": none, "CronJob": none}},
	}
	for _, c := range cases {
		f, ds := policy.Parse("p.yaml", []byte(rules(c.annotation, "name: a, "+podMatch+", "+check, "name: autogen-x, "+podMatch+", "+check)))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		for kind, want := range c.want {
			if d := cmp.Diff(want, names(f.Policies[0].RulesFor(kind))); d != "" {
				t.Errorf("%q, %s (-want +got):\n%s", c.annotation, kind, d)
			}
		}
	}
	p := parseGood(t, rules("", "name: a, "+podMatch+", "+check))
	expanded := policy.Expand(p)
	if d := cmp.Diff([]string{"DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}, expanded[1].Controllers); d != "" {
		t.Error(d)
	}
	last := expanded[2]
	if last.Index != 0 || last.Origin != "a" || last.Expansion != "autogen-cronjob" || !slices.Equal(last.Controllers, []string{"CronJob"}) {
		t.Errorf("%+v", last)
	}
}

// A generated rule is its source rewritten: the golden file has both forms of
// every construct.
func TestRewrite(t *testing.T) {
	files, err := filepath.Glob("testdata/expand/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source, want, ok := strings.Cut(string(data), "\n=== expanded\n")
		if !ok {
			source, want = string(data), ""
		}
		var got strings.Builder
		for _, r := range policy.Expand(parseGood(t, source)) {
			if r.Expansion == "" {
				continue
			}
			if r.Invalid {
				t.Errorf("%s is invalid", r.Name)
			}
			got.Write(policy.Marshal(&policy.Node{Kind: policy.List, Items: []*policy.Node{r.Source}}))
		}
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, []byte(source+"\n=== expanded\n"+got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if d := cmp.Diff(want, got.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
	}
}

// All that is generated points into the source.
func TestRewriteKeepsPlaces(t *testing.T) {
	p := parseGood(t, small)
	for _, r := range policy.Expand(p)[1:] {
		x := r.Validate.Pattern.Get("spec")
		for x.Get("x") == nil {
			if len(x.Fields) != 1 {
				t.Fatalf("%s: the pattern is not wrapped", r.Name)
			}
			x = x.Fields[0].Value
		}
		if got := x.Get("x").Pos; got.Line != 8 || got.Path != "spec.rules[0].validate.pattern.spec.x" {
			t.Errorf("%s: %#v", r.Name, got)
		}
		if k := r.Match.Any[0].Kinds[0]; k.Pos.Line != 7 {
			t.Errorf("%s: kind at %v", r.Name, k.Pos)
		}
	}
}

func TestParseKind(t *testing.T) {
	for text, want := range map[string]policy.KindSelector{
		"Pod":                          {"*", "*", "Pod", ""},
		"*":                            {"*", "*", "*", ""},
		"*/*":                          {"*", "*", "*", "*"},
		"*/scale":                      {"*", "*", "*", "scale"},
		"*/Pod":                        {"*", "*", "Pod", ""},
		"v1/Pod":                       {"*", "v1", "Pod", ""},
		"v1beta1/Pod":                  {"*", "v1beta1", "Pod", ""},
		"Pod/exec":                     {"*", "*", "Pod", "exec"},
		"Pod.exec":                     {"*", "*", "Pod", "exec"},
		"apps/v1/Deployment":           {"apps", "v1", "Deployment", ""},
		"apps/*/Deployment":            {"apps", "*", "Deployment", ""},
		"v1/Pod/exec":                  {"*", "v1", "Pod", "exec"},
		"*/*/*":                        {"*", "*", "*", "*"},
		"apps/v1/Deployment/scale":     {"apps", "v1", "Deployment", "scale"},
		"apps/v1/Deployment.scale":     {"apps", "v1", "Deployment", "scale"},
		"networking.k8s.io/v1/Ingress": {"networking.k8s.io", "v1", "Ingress", ""},
		"vx/Pod":                       {"*", "*", "vx", "Pod"},
	} {
		got, ok := policy.ParseKind(text)
		if !ok || got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
		if again, ok := policy.ParseKind(got.String()); !ok || again != want {
			t.Errorf("%s is written %s, which is %+v", text, got, again)
		}
	}
	if _, ok := policy.ParseKind("a/b/c/d/e"); ok {
		t.Error("five parts are a kind")
	}
}

// What else a rule is about has no part in its expansions: of filters beside those
// for Pod only what concerns the controllers is kept.
func TestOtherFilters(t *testing.T) {
	for filter, want := range map[string][]string{
		"{resources: {kinds: [Service]}}":                  nil,
		"{resources: {kinds: [Service, apps/v1/*]}}":       {"apps/v1/Deployment"},
		"{resources: {kinds: [Deployment/scale, '*Set']}}": {"Deployment/scale"},
		"{resources: {kinds: ['Dep?oy*', '*/*']}}":         {"Deployment", "*/*/Deployment/*"},
		"{subjects: [{kind: User, name: a}]}":              {"*/*/Deployment/*"},
		"{resources: {names: []}}":                         {"*/*/Deployment/*"},
	} {
		p := parseGood(t, rules("Deployment", "name: a, match: {any: [{resources: {kinds: [Pod]}}, "+filter+"]}, "+check))
		made := policy.Expand(p)[1]
		var got []string
		for _, f := range made.Match.Any[1:] {
			for _, k := range f.Kinds {
				got = append(got, k.Value)
			}
		}
		if d := cmp.Diff(want, got); d != "" || made.Invalid {
			t.Errorf("%s (-want +got):\n%s", filter, d)
		}
	}
	// The form that counts stays the one that counts.
	f, _ := policy.Parse("p.yaml", []byte(rules("", "name: a, match: {any: [{resources: {kinds: [Service]}}], all: [{resources: {kinds: [Pod]}}]}, "+check)))
	if made := policy.Expand(f.Policies[0])[1]; len(made.Match.Any) != 1 || made.Match.Any[0].Kinds != nil {
		t.Errorf("%s", policy.Marshal(made.Source))
	}
}

func TestWildcard(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a*", "abc", true}, {"*c", "abc", true}, {"a*c", "abbc", true},
		{"a?c", "abc", true}, {"a?c", "aéc", true}, {"a??c", "aéc", false}, {"a?c", "ac", false}, {"?", "", false}, {"*b*", "abc", true}, {"*x*", "abc", false}, {"abc", "abcd", false},
		{"a*b*c", "aXbYbZc", true}, {"a*b", "aXbY", false}, {strings.Repeat("*a", 40), strings.Repeat("a", 39), false},
	} {
		if got := policy.Wildcard(c.pattern, c.text); got != c.want {
			t.Errorf("%q, %q: %v", c.pattern, c.text, got)
		}
	}
}
