package translate_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// packable is a policy that differs from most others in what packs are made by, and
// in what its rules cost. other is the value that half of them ask for.
func packable(r *rand.Rand, name, other string) string {
	kinds := []string{"Pod", "ConfigMap", "Pod, Service", "Deployment, StatefulSet", "Secret", "apps/*/Deployment"}[r.IntN(6)]
	spec := []string{"", "validationFailureAction: Enforce,", "emitWarning: true,", "failurePolicy: Ignore,"}[r.IntN(4)]
	operations := []string{"", "operations: [CREATE],", "operations: [UPDATE, DELETE],"}[r.IntN(3)]
	checks := []string{
		fmt.Sprintf(`{message: m, pattern: {metadata: {labels: {%q: "?*"}}}}`, name),
		fmt.Sprintf(`{message: m, deny: {conditions: {any: [{key: %q, operator: AnyIn, value: %q}]}}}`, name, other),
	}
	return fmt.Sprintf("---\n"+`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: %s}, spec: {%s rules: [{name: r, match: {any: [{resources: {%s kinds: [%s]}}]}, validate: %s}]}}`+"\n",
		name, spec, operations, kinds, checks[r.IntN(len(checks))])
}

// names are the names of objects, with their members.
func packNames(t *testing.T, text string, pack translate.Pack) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, o := range compileText(t, text, setting{pack: pack}).Objects {
		for _, m := range o.Draft.Members {
			out[o.Policy.Name] = append(out[o.Policy.Name], m.Policy+"/"+m.Rule)
		}
	}
	return out
}

// A policy more renames no object that is not split for it, and takes no rule out
// of one. Where an object is split, its parts hold what it held.
func TestNamesStay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, other string
		most        int // how many objects are split for one policy more
	}{
		{"half of the rules are the webhook's", "{{ random('[a-z]{3}') }}", 5},
		{"packs of costly rules, of which parts are split again", "{{ request.object.metadata.finalizers[] || [] }}", 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			namesStay(t, tt.other, tt.most)
		})
	}
}

// letters is the part of a name that says which letters an object has: a half of a to z,
// which is split into halves of its own.
var letters = regexp.MustCompile(`-(up-to-\w|from-\w|\w-to-\w|\w)$`)

func namesStay(t *testing.T, other string, most int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"require", "restrict", "disallow", "a", "zz", "0-day"}
	text, split := "", 0
	for i := range 160 {
		name := fmt.Sprintf("%s-%c%d", words[r.IntN(len(words))], 'a'+rune(r.IntN(26)), i)
		if r.IntN(2) == 0 { // the order of the input is no reason for a name
			text += packable(r, name, other)
		} else {
			text = packable(r, name, other) + text
		}
		if i%8 != 0 && i < 150 {
			continue
		}
		before := packNames(t, text, translate.PackMatch)
		after := packNames(t, text+packable(r, fmt.Sprintf("new-%d", i), other), translate.PackMatch)
		for name, members := range before {
			rest := slices.DeleteFunc(slices.Clone(after[name]), func(m string) bool { return strings.HasPrefix(m, "new-") })
			if slices.Sort(rest); len(rest) > 0 {
				if slices.Sort(members); !slices.Equal(rest, members) {
					t.Fatalf("%d: %s held %v, and holds %v", i, name, members, rest)
				}
				continue
			}
			split++
			for part, held := range after {
				if _, there := before[part]; !there && strings.HasPrefix(part, letters.ReplaceAllString(name, "")+"-") {
					rest = append(rest, held...)
				}
			}
			for _, m := range members {
				if !slices.Contains(rest, m) {
					t.Errorf("%d: nothing that is called after %s holds %s", i, name, m)
				}
			}
		}
	}
	if split > most {
		t.Errorf("%d objects were split", split)
	}
}

// A rule is in a pack for what is written, and in one for deletions.
func TestPacksOfOperations(t *testing.T) {
	t.Parallel()
	text := `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [` +
		`{name: all, match: {any: [{resources: {operations: [CREATE, UPDATE, DELETE], kinds: [ConfigMap]}}]}, validate: {message: m, deny: {conditions: {any: [{key: "{{ request.userInfo.username }}", operator: Equals, value: bob}]}}}},` +
		`{name: new, match: {any: [{resources: {operations: [CREATE], kinds: [ConfigMap]}}]}, validate: {message: m, pattern: {metadata: {name: b*}}}}]}}`
	got := fmt.Sprint(packNames(t, text, translate.PackMatch))
	if want := "map[kvap-configmaps-audit:[p/all p/new] kvap-configmaps-delete-audit:[p/all]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What is asked of Pods and of their controllers alike is one object; what is asked of some of
// them asks which it is. Pods and the containers that are added to them are one, too.
func TestPacksOfFamilies(t *testing.T) {
	t.Parallel()
	one := func(name, controllers, kinds, operations string, check ...string) string {
		return fmt.Sprintf("---\n"+`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: %s, annotations: {pod-policies.kyverno.io/autogen-controllers: %q}}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [%s], operations: [%s]}}]}, validate: {message: m, pattern: {spec: %s}}}]}}`+"\n",
			name, controllers, kinds, operations, append(check, `{"=(hostNetwork)": false}`)[0])
	}
	text := one("all", "Deployment,StatefulSet,CronJob", "Pod", "CREATE, UPDATE") + one("some", "StatefulSet", "Pod", "CREATE, UPDATE") +
		one("new", "Deployment,StatefulSet,CronJob", "Pod", "CREATE") + one("pods", "none", "Pod", "CREATE, UPDATE") + one("debug", "none", "Pod/ephemeralcontainers", "UPDATE") +
		one("own", "none", "Deployment", "CREATE, UPDATE", "{replicas: 2}")
	want := map[string][]string{
		"kvap-pods-and-controllers-audit": {"", "object.kind in ['Pod', 'StatefulSet']", "request.operation == 'CREATE'"},
		"kvap-pods-audit":                 {"", "request.?subResource.orValue('') == 'ephemeralcontainers'"},
		"kvap-deployments-audit":          {""},
	}
	asked := map[string][]string{}
	question := regexp.MustCompile(`^!\((.*?)\) \|\| |^([^|]*? (?:!=|==) '\w+') \|\| `)
	for _, o := range compileText(t, text, setting{pack: translate.PackMatch}).Objects {
		for _, v := range o.Draft.Validations {
			found := question.FindStringSubmatch(vap.Inlined(v.Expr.Value, o.Draft.Variables).String())
			asks := ""
			if found != nil {
				asks = strings.ReplaceAll(found[1]+found[2], "!=", "==")
			}
			asked[o.Policy.Name] = append(asked[o.Policy.Name], asks)
		}
	}
	for name, asks := range want {
		if !slices.Equal(asked[name], asks) {
			t.Errorf("%s: its rules ask %q before their checks, want %q", name, asked[name], asks)
		}
	}
	if len(asked) != len(want) {
		t.Errorf("there are %d objects, want %d", len(asked), len(want))
	}
}

// A guard asks what a request is about before it reads what is there only then, whatever else the
// match asks; and a form that says something else than the others is in an object of its own kind.
func TestPacksAskFirst(t *testing.T) {
	t.Parallel()
	one := func(name, resources, validate string) string {
		return fmt.Sprintf("---\n"+`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: %s}, spec: {rules: [{name: r, match: {any: [{resources: {%s}}]}, validate: {message: m, allowExistingViolations: false, %s}}]}}`+"\n", name, resources, validate)
	}
	text := one("old", "kinds: [Service], operations: [UPDATE], namespaceSelector: {matchLabels: {team: a}}", `deny: {conditions: {any: [{key: "{{ request.oldObject.metadata.labels.app || '' }}", operator: Equals, value: locked}]}}`) +
		one("new", "kinds: [Service], operations: [CREATE]", `pattern: {metadata: {labels: {app: "?*"}}}`) +
		one("profile", "kinds: [Pod], operations: [CREATE, UPDATE], namespaceSelector: {matchLabels: {team: a}}", "podSecurity: {level: baseline, version: v1.24}") +
		one("pods", "kinds: [Pod], operations: [CREATE, UPDATE]", `pattern: {spec: {"=(hostNetwork)": false}}`)
	seen := map[string]bool{}
	for _, o := range compileText(t, text, setting{pack: translate.PackMatch}).Objects {
		guard := o.Draft.Guard.String()
		seen[o.Policy.Name] = true
		switch o.Policy.Name {
		case "kvap-services-audit":
			if !strings.HasPrefix(guard, "request.operation == 'UPDATE' && ") {
				t.Errorf("the guard reads the old object of a request that has none:\n%s", guard)
			}
		case "kvap-pods-and-controllers-audit":
			if strings.Contains(guard, "jobTemplate") {
				t.Errorf("the guard reads what only a CronJob has:\n%s", guard)
			}
		}
	}
	for _, want := range []string{"kvap-services-audit", "kvap-pods-and-controllers-audit", "kvap-cronjobs-audit"} {
		if !seen[want] {
			t.Errorf("there is no %s, but %v", want, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// An object of a policy has the name and the members that it has alone when a policy comes that is
// about the same kinds and has another object.
func TestNamesWithoutNeighbours(t *testing.T) {
	t.Parallel()
	one := func(name, kind, more, validate string) string {
		return fmt.Sprintf("---\n"+`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: %s, annotations: {pod-policies.kyverno.io/autogen-controllers: Deployment}}, spec: {validationFailureAction: Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [%s], operations: [CREATE, UPDATE]}}]}, %s validate: {message: m, allowExistingViolations: false, %s}}]}}`+"\n", name, kind, more, validate)
	}
	pods := one("pods", "Pod", "", `pattern: {spec: {"=(hostNetwork)": false}}`)
	const labelled = `pattern: {metadata: {labels: {app: "?*"}}}`
	ofConfigMap := func(namespace, name string) string {
		return one(namespace+"."+name, "ConfigMap", fmt.Sprintf("context: [{name: cm, configMap: {name: %s, namespace: %s}}],", name, namespace),
			`deny: {conditions: {any: [{key: "{{ request.object.metadata.labels.app || '' }}", operator: NotEquals, value: "{{ cm.data.app }}"}]}}`)
	}
	const mounts = "{{ request.object.spec.[initContainers, containers][].volumeMounts[?name == '{{ element.name }}'%s][] | length(@) }}"
	costly := one("costly", "Pod", "", fmt.Sprintf(`foreach: [{list: "request.object.spec.volumes[?hostPath]", deny: {conditions: {any: [{key: "`+mounts+`", operator: NotEquals, value: "`+mounts+`"}]}}}]`, "", " && readOnly"))
	for name, pair := range map[string][2]string{
		"a kind that is called as Pods and controllers might be": {one("kueue", "Workload", "", labelled), pods},
		"ConfigMaps whose names say the same with a hyphen":      {ofConfigMap("a-b", "c"), ofConfigMap("a", "b-c")},
		"a rule that costs too much to share":                    {costly, pods},
	} {
		alone, both := packNames(t, pair[0], translate.PackMatch), packNames(t, pair[1]+pair[0], translate.PackMatch)
		if len(alone) == 0 {
			t.Errorf("%s: there is no object", name)
		}
		for object, members := range alone {
			if !slices.Equal(both[object], members) {
				t.Errorf("%s: %s has %v alone, and %v beside another: %v", name, object, members, both[object], both)
			}
		}
	}
}

// Objects of one policy are told apart by the rule, then by what they are about, then by what
// happens to it.
func TestNamesOfAPolicy(t *testing.T) {
	t.Parallel()
	rule := func(name, kinds, operations string) string {
		return fmt.Sprintf(`{name: %s, match: {any: [{resources: {kinds: [%s], operations: [%s]}}]}, validate: {message: m, deny: {conditions: {any: [{key: "{{ request.operation }}/{{ request.object.kind }}", operator: NotEquals, value: a}]}}}}`, name, kinds, operations)
	}
	for _, tt := range []struct {
		rules []string
		want  string
	}{
		{[]string{rule("r", "Secret", "CREATE")}, "tidy"},
		{[]string{rule("r", "Secret", "DELETE")}, "tidy-deletions"},
		{[]string{rule("r", "Secret", "CREATE, UPDATE")}, "tidy tidy-updates"},
		{[]string{rule("r", "Secret, ConfigMap", "CREATE")}, "tidy"},
		{[]string{rule("r", "Secret", "CREATE"), rule("tidy-maps", "ConfigMap", "CREATE")}, "tidy-maps tidy-r"},
		{[]string{rule("a", "Secret", "CREATE"), rule("b", "Secret", "CREATE")}, "tidy"},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: tidy}, spec: {rules: [%s]}}`, strings.Join(tt.rules, ", "))
		if got := strings.Join(slices.Sorted(maps.Keys(packNames(t, text, translate.PackPolicy))), " "); got != tt.want {
			t.Errorf("%v\ngot  %s\nwant %s", tt.rules, got, tt.want)
		}
	}
}

// A rule about Pods that says the same of templates is a member wherever it is enforced, also
// where its Pods share an object with another rule.
func TestPodsAreMembers(t *testing.T) {
	t.Parallel()
	text := `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {background: false, rules: [
  {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {metadata: true}}},
  {name: s, match: {any: [{resources: {kinds: ["Pod*"]}}]}, validate: {pattern: {metadata: {annotations: {app: "?*"}}}}}]}}`
	for _, o := range compileText(t, text, setting{}).Objects {
		for _, rules := range o.Policy.Spec.MatchConstraints.ResourceRules {
			if !slices.Contains(rules.Resources, "pods") && !slices.Contains(rules.Resources, "pods/ephemeralcontainers") {
				continue
			}
			if !slices.ContainsFunc(o.Draft.Members, func(m vap.Member) bool { return m.Rule == "r" || m.Rule == "s" }) {
				t.Errorf("%s is about Pods, and has no rule that is: %v", o.Policy.Name, o.Draft.Members)
			}
		}
	}
}
