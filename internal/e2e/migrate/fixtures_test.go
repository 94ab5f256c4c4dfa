//go:build e2e

package migrate

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/internal/e2e/attempt"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// ofFixtures has TestFixtures run, which the other tests would wait for.
var ofFixtures = flag.Bool("fixtures", false, "move the policies of all fixtures, there and back: some ten minutes")

// only narrows TestFixtures down while one works on something.
var only = flag.String("only", "", "take only fixtures whose name has this in it, and expect no numbers of them")

// A member is a fixture whose policies are in the cluster, together with those of others.
type member struct {
	fixtures.Fixture
	file   *policy.File
	cases  []fixtures.Case
	engine *interp.Interpreter
	// table is a group of users: the policies are about their requests only.
	table string
}

// members are the fixtures that can go to a cluster, and why others cannot, by name.
func members(t *testing.T) (in []*member, out map[string]string) {
	t.Helper()
	out = map[string]string{}
	for _, f := range fixtures.All() {
		if !strings.Contains(f.Name, *only) {
			continue
		}
		m, why := newMember(t, f)
		if why != "" {
			out[f.Name] = why
			continue
		}
		in = append(in, m)
	}
	return in, out
}

func newMember(t *testing.T, f fixtures.Fixture) (m *member, why string) {
	t.Helper()
	file, found := policy.Parse("policy.yaml", f.Policy)
	switch {
	case found.HasErrors():
		return nil, "it cannot be read as a whole"
	case len(file.Policies) == 0:
		return nil, "it has no policy"
	case f.Cases == nil:
		return nil, "it has no requests"
	case f.Options != nil:
		return nil, "it is about an option of kvap convert, which the controller has not"
	}
	cases, err := fixtures.ParseCases(f.Cases)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[metav1.GroupVersionResource]string{}
	for r, kind := range attempt.CustomKinds() {
		kinds[metav1.GroupVersionResource(r)] = kind
	}
	engine := interp.New(file.Policies, file.Exceptions, &interp.Offline{Kinds: kinds}, interp.Limits{})
	return &member{Fixture: f, file: file, cases: cases, engine: engine}, ""
}

// seat puts fixtures at tables of which none has anything against a request of another at
// its table. So a request that is good for its own fixture is good, one that is bad is
// bad for its own fixture alone, and policies of a table share native objects.
func seat(t *testing.T, all []*member) (tables [][]*member) {
	t.Helper()
	for _, m := range all {
		i := slices.IndexFunc(tables, func(table []*member) bool {
			return !slices.ContainsFunc(table, func(o *member) bool { return m.against(t, o) || o.against(t, m) })
		})
		if i < 0 {
			i, tables = len(tables), append(tables, nil)
		}
		tables[i] = append(tables[i], m)
		m.table = fmt.Sprintf("table-%d", i)
	}
	return tables
}

// against tells that the policies of a fixture deny a request of another one.
func (m *member) against(t *testing.T, o *member) bool {
	t.Helper()
	return slices.ContainsFunc(o.cases, func(c fixtures.Case) bool {
		data, err := c.Request()
		if err != nil {
			t.Fatal(err)
		}
		request, err := interp.ParseAdmission(data)
		if err != nil {
			t.Fatal(err)
		}
		results := m.engine.Judge(t.Context(), &interp.Request{
			Admission: request, NamespaceLabels: c.NamespaceLabels, Roles: c.Roles, ClusterRoles: c.ClusterRoles,
		})
		return slices.ContainsFunc(results, func(r interp.RuleResult) bool { return r.Status == interp.Fail || r.Status == interp.Error })
	})
}

// install makes the exceptions of a fixture, and then its policies, which it returns; why
// tells that Kyverno's definitions do not take them.
func (m *member) install(t *testing.T, c *cluster) (policies []*unstructured.Unstructured, why string) {
	t.Helper()
	for _, e := range m.file.Exceptions {
		if err := c.makeSource(t, e.Source); err != nil {
			t.Fatalf("%s: %s: %v", m.Name, e.Name, err)
		}
	}
	for _, p := range m.file.Policies {
		o := asMade(t, p.Source)
		m.confine(t, o)
		if err := c.Create(t.Context(), o); apierrors.IsInvalid(err) && len(policies) == 0 {
			return nil, "the API server refuses it by Kyverno's definition: " + err.Error()
		} else if err != nil {
			t.Fatalf("%s: %s: %v", m.Name, p.FullName(), err)
		}
		policies = append(policies, o)
	}
	return policies, ""
}

// makeSource makes an object as it is written.
func (c *cluster) makeSource(t *testing.T, source *policy.Node) error {
	t.Helper()
	o := asMade(t, source)
	c.Namespace(t, o.GetNamespace(), nil)
	return c.Create(t.Context(), o)
}

// asMade is a source as an object.
func asMade(t *testing.T, source *policy.Node) *unstructured.Unstructured {
	t.Helper()
	data, err := json.Marshal(source.Value())
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

// confine makes a policy one about the requests of its table. One of a fixture in which
// nothing denies is made to deny: what it finds would not be seen otherwise.
func (m *member) confine(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	own := o.GroupVersionKind().Group == "kyverno.io"
	at := []string{"spec", "matchConditions"}
	if own {
		at = []string{"spec", "webhookConfiguration", "matchConditions"}
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, at...)
	if err == nil {
		err = unstructured.SetNestedSlice(o.Object, append(conditions, map[string]any{
			"name": "table", "expression": fmt.Sprintf("has(request.userInfo.groups) && '%s' in request.userInfo.groups", m.table),
		}), at...)
	}
	if err == nil && own && !m.denies() {
		err = unstructured.SetNestedField(o.Object, string(policy.Enforce), "spec", "validationFailureAction")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// denies tells that some rule does.
func (m *member) denies() bool {
	return slices.ContainsFunc(m.file.Policies, func(p *policy.Policy) bool {
		return p.Action == policy.Enforce || len(p.Overrides) > 0 || slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool {
			return r.Validate != nil && r.Validate.Action == policy.Enforce
		})
	})
}
