package cleanup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/interp"
)

// deleter is a DeletingPolicy that was made at noon and runs at each full hour.
func deleter(t *testing.T, kind, meta, spec string) *unstructured.Unstructured {
	t.Helper()
	return object(t, "apiVersion: policies.kyverno.io/v1\nkind: "+kind+"\nmetadata: {name: old, uid: u-old, resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-31T12:00:00Z'"+meta+"}\n"+
		"spec: {schedule: '0 * * * *', matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: ['*']}]}"+spec+"}\n")
}

// A DeletingPolicy deletes what its rules and conditions say, and keeps what an exception
// of a trusted namespace is from.
func TestDeleting(t *testing.T) {
	const old = ", conditions: [{name: old, expression: \"object.?metadata.labels.old.orValue('') == 'yes'\"}]"
	const keeps = "apiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: e, namespace: ops}\n" +
		"spec: {policyRefs: [{name: old, kind: DeletingPolicy}], matchConditions: [{name: a, expression: \"object.metadata.name == 'a'\"}]}"
	for name, c := range map[string]struct {
		policy   *unstructured.Unstructured
		excepted string
		trusted  string
		left     string
		says     string
	}{
		"conditions":              {deleter(t, "DeletingPolicy", "", old), "", "", "cde", "the last run deleted 2 objects"},
		"its namespace":           {deleter(t, "NamespacedDeletingPolicy", ", namespace: team", old), "", "", "bcde", "the last run deleted 1 object"},
		"no conditions":           {deleter(t, "DeletingPolicy", "", ""), "", "", "de", "the last run deleted 3 objects"},
		"an unknown field":        {deleter(t, "DeletingPolicy", "", old+", x: 1"), "", "", "abcde", `has no key "x"`},
		"an exception":            {deleter(t, "DeletingPolicy", "", old), keeps, "ops", "acde", "the last run deleted 1 object"},
		"one that is not trusted": {deleter(t, "DeletingPolicy", "", old), keeps, "other", "cde", "the last run deleted 2 objects"},
		"one that cannot be read": {deleter(t, "DeletingPolicy", "", old), strings.Replace(keeps, "spec: {", "spec: {wrong: 1, ", 1), "*", "abcde", "the exception ops/e"},
		"shadow":                  {deleter(t, "DeletingPolicy", ", annotations: {kvap.dev/mode: shadow}", old), "", "", "abcde", "2 objects"},
		"a broken expression":     {deleter(t, "DeletingPolicy", "", ", conditions: [{name: a, expression: nothing}]"), "", "", "abcde", "undeclared reference"},
		"a broken schedule": {func() *unstructured.Unstructured {
			o := deleter(t, "DeletingPolicy", "", old)
			o.Object["spec"].(map[string]any)["schedule"] = "sometimes"
			return o
		}(), "", "", "abcde", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := newFake(t, c.policy)
			if c.excepted != "" {
				f.excepted, r.ExceptionNamespaces = []*unstructured.Unstructured{object(t, c.excepted)}, []string{c.trusted}
			}
			f.at(t, r, "13:00:00")
			if got := f.left(); got != c.left {
				t.Errorf("left are %s, not %s", got, c.left)
			}
			if got := f.ready(t); !strings.Contains(got, c.says) {
				t.Errorf("says %q, not %q", got, c.says)
			}
		})
	}
}

// A policy without constraints, which Kyverno's definition lets in, is about no object, and
// ends no process.
func TestDeletingWithoutConstraints(t *testing.T) {
	for _, spec := range []string{"", "{}", "{resourceRules: []}"} {
		o := deleter(t, "NamespacedDeletingPolicy", ", namespace: team", "")
		unstructured.RemoveNestedField(o.Object, "spec", "matchConstraints")
		if spec != "" {
			o.Object["spec"].(map[string]any)["matchConstraints"] = object(t, spec).Object
		}
		f, r := newFake(t, o)
		f.at(t, r, "13:00:00")
		if got := f.left(); got != "abcde" {
			t.Errorf("%q: left are %s", spec, got)
		}
	}
}

// An expression that never ends ends its run, and nothing is deleted by it.
func TestDeletingThatNeverEnds(t *testing.T) {
	const all = "lists.range(100000)"
	f, r := newFake(t)
	p := Read(deleter(t, "DeletingPolicy", "", ", conditions: [{name: a, expression: \""+all+".all(x, "+all+".all(y, "+all+".all(z, x + y + z >= 0)))\"}]"), "enforce")
	if p.why != "" {
		t.Fatal(p.why)
	}
	one := newRun(p, nil, f, &interp.Offline{}, r.ExcludeNamespaces, false)
	one.patience = 50 * time.Millisecond
	result := one.do(t.Context())
	if got := f.left(); got != "abcde" || result.Failed != 1 || !strings.Contains(strings.Join(result.problems, ""), "take too long") {
		t.Errorf("left are %s, %+v", got, result)
	}
}

// While exceptions cannot be read nothing is deleted that one might be from.
func TestExceptionsUnknown(t *testing.T) {
	f, r := newFake(t, deleter(t, "DeletingPolicy", "", ""))
	f.refuse["exceptions"] = errors.New("no answer")
	f.at(t, r, "13:00:00")
	if got := f.left(); got != "abcde" {
		t.Errorf("left are %s", got)
	}
	if got := f.ready(t); !strings.Contains(got, "no answer") {
		t.Error(got)
	}
}

// A rule means resources that can be listed and deleted, each in one version.
func TestResources(t *testing.T) {
	for rule, want := range map[string]string{
		"apiGroups: [''], apiVersions: [v1], resources: [configmaps]":                  "configmaps",
		"apiGroups: ['*'], apiVersions: ['*'], resources: ['*']":                       "configmaps nodes deployments.apps",
		"apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*']":                     "configmaps nodes deployments.apps",
		"apiGroups: [apps], apiVersions: [v1beta1], resources: [deployments]":          "deployments.apps",
		"apiGroups: [''], apiVersions: [v1], resources: [configmaps/status, bindings]": "- configmaps/status, bindings",
		"apiGroups: [example.com], apiVersions: [v1], resources: [widgets]":            "- example.com/widgets",
	} {
		o := deleter(t, "DeletingPolicy", "", "")
		o.Object["spec"].(map[string]any)["matchConstraints"] = object(t, "resourceRules: [{operations: ['*'], "+rule+"}]").Object
		f, _ := newFake(t)
		seen := &seeing{fake: f}
		result := newRun(Read(o, "enforce"), nil, seen, nil, nil, true).do(t.Context())
		got := strings.Join(seen.resources, " ")
		if len(result.unserved) > 0 {
			got = strings.TrimSpace(got + "- " + strings.Join(result.unserved, ", "))
		}
		if got != want {
			t.Errorf("%s: %s, not %s", rule, got, want)
		}
	}
}

// A seeing notes which resources are listed.
type seeing struct {
	*fake
	resources []string
}

func (s *seeing) Each(_ context.Context, r Resource, _ string, _ bool, _ func(*unstructured.Unstructured) error) error {
	s.resources = append(s.resources, r.GroupResource().String())
	return nil
}
