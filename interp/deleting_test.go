package interp_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

func deleting(t *testing.T, kind, spec string, exceptions ...string) *interp.Cleanup {
	t.Helper()
	f, ds := policy.Parse("d.yaml", []byte("apiVersion: policies.kyverno.io/v1\nkind: "+kind+"\nmetadata: {name: d, namespace: team}\nspec:\n  schedule: \"0 * * * *\"\n"+spec))
	if ds.HasErrors() || len(f.Cleanups) != 1 {
		t.Fatal(ds)
	}
	var excepted []*policy.Exception
	for _, text := range exceptions {
		f, ds := policy.Parse("e.yaml", []byte("apiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: e, namespace: ops}\nspec: "+text))
		if ds.HasErrors() || len(f.Exceptions) != 1 {
			t.Fatal(ds)
		}
		excepted = append(excepted, f.Exceptions...)
	}
	world := &interp.Offline{
		Time:    time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC),
		Objects: []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team", "labels": map[string]any{"tier": "dev"}}}},
	}
	return interp.NewCleanup(f.Cleanups[0], excepted, world, interp.Limits{})
}

// What a DeletingPolicy deletes: its rules whatever their operations, its selectors, its
// conditions, which know the variables, and nothing that an exception is from.
func TestDeletes(t *testing.T) {
	const pods = "  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [DELETE]}]\n"
	const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team, labels: {keep: "no"}, creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {containers: [{name: c, image: "app:1"}]}}`
	const from = "policyRefs: [{name: d, kind: DeletingPolicy}]"
	conditions := func(expressions ...string) string {
		out := "  conditions:\n"
		for i, e := range expressions {
			out += "  - {name: c" + string(rune('a'+i)) + ", expression: \"" + e + "\"}\n"
		}
		return out
	}
	for _, tt := range []struct {
		name, kind, spec, object string
		exceptions               []string
		want                     bool
		err                      string
	}{
		{"no conditions", "DeletingPolicy", pods, pod, nil, true, ""},
		{"another resource", "DeletingPolicy", strings.Replace(pods, "[pods]", "[secrets]", 1), pod, nil, false, ""},
		{"what is left out", "DeletingPolicy", pods + "    excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE], resourceNames: [p]}]\n", pod, nil, false, ""},
		{"left out for another operation", "DeletingPolicy", pods + "    excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [DELETE]}]\n", pod, nil, true, ""},
		{"labels", "DeletingPolicy", pods + "    objectSelector: {matchLabels: {keep: \"no\"}}\n", pod, nil, true, ""},
		{"other labels", "DeletingPolicy", pods + "    objectSelector: {matchLabels: {keep: \"yes\"}}\n", pod, nil, false, ""},
		{"the namespace's labels", "DeletingPolicy", pods + "    namespaceSelector: {matchLabels: {tier: dev}}\n", pod, nil, true, ""},
		{"of another namespace", "DeletingPolicy", pods + "    namespaceSelector: {matchLabels: {tier: prod}}\n", pod, nil, false, ""},
		{"conditions", "DeletingPolicy", pods + conditions("object.metadata.name == 'p'", "namespaceObject.metadata.labels.tier == 'dev'"), pod, nil, true, ""},
		{"one that is false", "DeletingPolicy", pods + conditions("object.metadata.name == 'p'", "object.metadata.labels.keep == 'yes'"), pod, nil, false, ""},
		{"one that is false behind an error", "DeletingPolicy", pods + conditions("object.spec.none == 1", "object.metadata.labels.keep == 'yes'"), pod, nil, false, ""},
		{"an error", "DeletingPolicy", pods + conditions("object.spec.none == 1"), pod, nil, false, "failed to evaluate conditions"},
		{"variables", "DeletingPolicy", pods + "  variables: [{name: images, expression: \"object.spec.containers.map(c, c.image)\"}]\n" + conditions("'app:1' in variables.images"), pod, nil, true, ""},
		{"age", "DeletingPolicy", pods + conditions("time.now() - timestamp(object.metadata.creationTimestamp) > duration('1h')"), pod, nil, true, ""},
		{"there is no request", "DeletingPolicy", pods + conditions("request.operation == 'CREATE'"), pod, nil, false, "no such attribute"},
		{"a Namespace is its own", "DeletingPolicy", strings.Replace(pods, "[pods]", "[namespaces]", 1) + conditions("namespaceObject.metadata.labels.tier == 'new'"),
			`{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {tier: new}}}`, nil, true, ""},
		{"its own namespace", "NamespacedDeletingPolicy", pods, pod, nil, true, ""},
		{"another namespace", "NamespacedDeletingPolicy", pods, strings.Replace(pod, "team", "other", 1), nil, false, ""},
		{"an exception", "DeletingPolicy", pods, pod, []string{"{" + from + "}"}, false, ""},
		{"from another policy", "DeletingPolicy", pods, pod, []string{"{policyRefs: [{name: x, kind: DeletingPolicy}]}"}, true, ""},
		{"one that allows values excepts too", "DeletingPolicy", pods, pod, []string{"{" + from + ", allowedValues: [x]}"}, false, ""},
		{"one whose condition is false", "DeletingPolicy", pods, pod, []string{"{" + from + ", matchConditions: [{name: a, expression: \"object.metadata.name == 'q'\"}]}"}, true, ""},
		{"one that knows the variables", "DeletingPolicy", pods + "  variables: [{name: name, expression: object.metadata.name}]\n", pod,
			[]string{"{" + from + ", matchConditions: [{name: a, expression: \"variables.name == 'p'\"}]}"}, false, ""},
		{"one that errs", "DeletingPolicy", pods, pod, []string{"{" + from + ", matchConditions: [{name: a, expression: \"object.none == 1\"}]}"}, false, "failed to evaluate an exception"},
		{"one that has ended", "DeletingPolicy", pods, pod, []string{"{" + from + ", expiresAt: \"2026-01-01T01:00:00Z\"}"}, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := object(t, tt.object)
			resource := schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(o["kind"].(string)) + "s"}
			got, err := deleting(t, tt.kind, tt.spec, tt.exceptions...).Deletes(t.Context(), resource, o)
			if got != tt.want || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, %v; want %v, %q", got, err, tt.want, tt.err)
			}
		})
	}
}

// What does not compile deletes nothing, and says so before any object is looked at.
func TestDeletingBroken(t *testing.T) {
	const pods = "  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: ['*']}]\n"
	for spec, want := range map[string]string{
		pods + "  conditions: [{name: a, expression: 'object.metadata.name'}]\n":                                                    "must evaluate to bool",
		pods + "  conditions: [{name: a, expression: 'nothing == 1'}]\n":                                                            "undeclared reference",
		pods + "  variables: [{name: a, expression: 'variables.b'}, {name: b, expression: '1'}]\n":                                  "undefined field",
		pods + "  conditions: [{name: a, expression: 'object.x.orValue(true) == true'}]\n":                                          "",
		pods + "  variables: [{name: a, expression: 'object.spec'}]\n  conditions: [{name: a, expression: 'has(variables.a.x)'}]\n": "",
	} {
		err := deleting(t, "DeletingPolicy", spec).Broken()
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", spec, err, want)
		}
	}
}

func TestNextDeletion(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 30, 0, 0, time.FixedZone("", 3600))
	for schedule, want := range map[string]string{
		"0 * * * *": "2026-03-01T10:00:00Z", "@daily": "2026-03-02T00:00:00Z", "30 0 9 1 3 * *": "2027-03-01T09:00:30Z", "0 0 L * *": "2026-03-31T00:00:00Z",
		"0 0 * * MON#2": "2026-03-09T00:00:00Z", "0 0 1 1 * 2028": "2028-01-01T00:00:00Z", "0 0 1 1 * 2020": "never due", "* * * *": "cannot be read", "": "cannot be read",
	} {
		got, err := interp.NextDeletion(schedule, at)
		text := got.Format(time.RFC3339)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("%q: got %s, want %s", schedule, text, want)
		}
	}
}
