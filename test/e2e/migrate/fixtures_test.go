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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/test/e2e/attempt"
)

// ofFixtures has TestFixtures run, which the other tests would wait for.
var ofFixtures = flag.Bool("fixtures", false, "move the policies of all fixtures, there and back: some ten minutes")

// only narrows TestFixtures down while one works on something.
var only = flag.String("only", "", "take only fixtures whose name has this in it, and expect no numbers of them")

// A member is a fixture whose policies are in the cluster, together with those of others.
type member struct{ *attempt.Guest }

// table is a group of users: the policies are about their requests only.
func (m *member) table() string { return fmt.Sprintf("table-%d", m.Table) }

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
	case slices.ContainsFunc(file.Policies, func(p *policy.Policy) bool { return p.Mutating != nil || p.Generating != nil }):
		return nil, "it has a MutatingPolicy or a GeneratingPolicy, which stay with Kyverno: migrate enforce refuses them"
	case f.Options != nil:
		return nil, "it is about an option of kvap convert, which the controller has not"
	}
	return &member{attempt.NewGuest(t, f)}, ""
}

// seat puts them at tables, which is how many there are.
func seat(t *testing.T, all []*member) (tables int) {
	t.Helper()
	var guests []*attempt.Guest
	for _, m := range all {
		guests = append(guests, m.Guest)
	}
	return len(attempt.Seat(t, guests))
}

// install makes the exceptions of a fixture, and then its policies, which it returns; why
// tells that Kyverno's definitions do not take them.
func (m *member) install(t *testing.T, c *cluster) (policies []*unstructured.Unstructured, why string) {
	t.Helper()
	for _, e := range m.File.Exceptions {
		if err := c.makeSource(t, e.Source); err != nil {
			t.Fatalf("%s: %s: %v", m.Name, e.Name, err)
		}
	}
	for _, p := range m.File.Policies {
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
			"name": "table", "expression": fmt.Sprintf("has(request.userInfo.groups) && '%s' in request.userInfo.groups", m.table()),
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
	return slices.ContainsFunc(m.File.Policies, func(p *policy.Policy) bool {
		return p.Action == policy.Enforce || len(p.Overrides) > 0 || slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool {
			return r.Validate != nil && r.Validate.Action == policy.Enforce
		})
	})
}
