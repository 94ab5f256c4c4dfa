package interp

import (
	"fmt"
	"strings"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/policy"
)

// mutateWidget runs documents, policies and exceptions, over a Widget of the
// namespace b.
func mutateWidget(t *testing.T, object string, documents ...string) *MutationResult {
	t.Helper()
	f, ds := policy.Parse("p.yaml", []byte(strings.Join(documents, "\n---\n")))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	var o map[string]any
	unmarshal(t, object, &o)
	return New(f.Policies, f.Exceptions, &Offline{}, Limits{}).Mutate(t.Context(), &Request{Admission: create(o)})
}

const widget = `{"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "b"}, "spec": {"l": ["x", "y"]}}`

func TestMutateExcepted(t *testing.T) {
	got := mutateWidget(t, widget, widgetPolicy("mutate: {patchStrategicMerge: {spec: {x: 1}}}"), `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: b}
spec:
  exceptions: [{policyName: p, ruleNames: [r]}]
  match: {any: [{resources: {kinds: [Widget]}}]}`)
	r := got.Rules[0]
	if r.Status != Skip || len(r.Exceptions) != 1 || r.Exceptions[0] != "b/e" || got.Changed() {
		t.Errorf("%+v", r)
	}
}

// A policy in which a rule errs changes nothing; the next goes on with what was
// there before it.
func TestMutateDropsWhatErrs(t *testing.T) {
	rules := strings.TrimSuffix(widgetPolicy("mutate: {patchStrategicMerge: {spec: {first: 1}}}"), "\n") + `
  - name: s
    match: {any: [{resources: {kinds: [Widget]}}]}
    mutate: {patchStrategicMerge: {spec: {x: "{{ nope }}"}}}
`
	next := strings.Replace(widgetPolicy(`mutate: {patchStrategicMerge: {spec: {seen: "{{ request.object.spec.first || 'nothing' }}"}}}`), "name: p", "name: q", 1)
	got := mutateWidget(t, widget, rules, next)
	if got.Rules[0].Status != Pass || got.Rules[1].Status != Error || got.Rules[2].Status != Pass {
		t.Fatalf("%+v", got.Rules)
	}
	if dig(got.Rules[0].After, "spec", "first") == nil || dig(got.After, "spec", "first") != nil || dig(got.After, "spec", "seen") != "nothing" {
		t.Errorf("%v", got.After)
	}
	if patch := got.Patch(); len(patch) != 1 || patch[0].Path != "/spec/seen" || len(got.Rules[0].Patch()) != 1 || got.Rules[1].Patch() != nil {
		t.Errorf("%v", patch)
	}
}

func TestMutateInItsNamespace(t *testing.T) {
	for namespace, want := range map[string]Status{"b": Pass, "c": None} {
		text := strings.Replace(widgetPolicy("mutate: {patchStrategicMerge: {spec: {x: 1}}}"), "kind: ClusterPolicy\nmetadata: {name: p}", "kind: Policy\nmetadata: {name: p, namespace: "+namespace+"}", 1)
		if got := mutateWidget(t, widget, text).Rules[0]; got.Status != want || got.Namespace != namespace {
			t.Errorf("%s: %+v", namespace, got)
		}
	}
}

// No rule fills the memory, or runs for ever.
func TestMutateBounds(t *testing.T) {
	numbers := "[" + strings.TrimSuffix(strings.Repeat("1,", 300), ",") + "]"
	doubling := strings.Repeat(" {list: \"['x']\", patchStrategicMerge: {spec: {s: \"{{ request.object.spec.s || 'xxxxxxxxxxxxxxxx' }}{{ request.object.spec.s || 'xxxxxxxxxxxxxxxx' }}\"}}},", 24)
	for _, tt := range []struct{ name, body, want string }{
		{"loops within loops", "foreach: [{list: '`" + numbers + "`', foreach: [{list: '`" + numbers + "`', patchStrategicMerge: {spec: {x: 1}}}]}]", "visits more than"},
		{"a text that doubles", "foreach: [" + doubling + "]", "larger than"},
		{"a list that doubles", `patchesJson6902: "` + strings.Repeat(`- {op: copy, from: /spec, path: /spec/l/-}\n`, 30) + `"`, "too much of the object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := mutateWidget(t, widget, widgetPolicy("mutate: {"+tt.body+"}")).Rules[0]
			if got.Status != Error || !strings.Contains(got.Message, tt.want) {
				t.Errorf("%s: %.300s", got.Status, got.Message)
			}
		})
	}
}

func TestMutateMessages(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{"patchStrategicMerge: {spec: {x: 1}}", "pass mutated Widget/a in namespace b"},
		{"patchStrategicMerge: {spec: {(y): 1}}", "skip no patches applied"},
		{`foreach: [{list: "request.object.spec.none || []", patchStrategicMerge: {a: 1}}]`, "skip 0 elements processed"},
		{`patchStrategicMerge: {spec: {x: "{{ nope }}"}}`, "error variable substitution failed: "},
		{`patchesJson6902: "- {op: remove, path: /kind}"`, "error failed to unmarshal patched resource: "},
		{`patchesJson6902: "- {op: replace, path: /q, value: 1}"`, "error failed to patch resource: "},
	} {
		got := mutateWidget(t, widget, widgetPolicy("mutate: {"+tt.body+"}")).Rules[0]
		if text := fmt.Sprintf("%s %s", got.Status, got.Message); !strings.HasPrefix(text, tt.want) {
			t.Errorf("got %s, want %s", text, tt.want)
		}
	}
}

// A {{ @ }} inside of another variable is the field's own value too, and not all that
// the request says.
func TestMutateCurrentInVariable(t *testing.T) {
	for _, tt := range []struct{ patch, want string }{
		{`patchStrategicMerge: {metadata: {name: "{{ to_upper('{{@}}') }}"}}`, "A"},
		{`patchStrategicMerge: {metadata: {name: "{{ join('-', ['{{ @ }}', to_upper('{{- @ }}')]) }}"}}`, "a-A"},
		{`patchStrategicMerge: {metadata: {name: "{{ @ }}{{ to_upper('{{@}}') }}"}}`, "aA"},
		{`patchStrategicMerge: {spec: {l: ["{{ to_upper('{{@}}') }}"]}, metadata: {name: "{{ request.object.{{ to_string('metadata') }}.name }}"}}`, "a"},
	} {
		got := mutateWidget(t, widget, widgetPolicy("mutate: {"+tt.patch+"}"))
		if r := got.Rules[0]; dig(got.After, "metadata", "name") != tt.want {
			t.Errorf("%s: %s %.200s, %.300v", tt.patch, r.Status, r.Message, dig(got.After, "metadata", "name"))
		}
	}
}

func unmarshal(t *testing.T, text string, into *map[string]any) {
	t.Helper()
	if err := kjson.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}
