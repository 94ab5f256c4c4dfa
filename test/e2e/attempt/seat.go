//go:build e2e

package attempt

import (
	"slices"
	"testing"

	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A Guest is a fixture whose policies are in force together with those of others.
type Guest struct {
	fixtures.Fixture
	File  *policy.File
	Cases []fixtures.Case
	// Table is the number of the one where it sits.
	Table int

	judge *interp.Interpreter
}

// NewGuest reads a fixture that has cases.
func NewGuest(t *testing.T, f fixtures.Fixture) *Guest {
	t.Helper()
	cases, err := fixtures.ParseCases(f.Cases)
	if err != nil {
		t.Fatal(err)
	}
	file, _ := policy.Parse("policy.yaml", f.Policy)
	world := &interp.Offline{Kinds: CustomKind}
	return &Guest{Fixture: f, File: file, Cases: cases, judge: interp.New(file.Policies, file.Exceptions, world, interp.Limits{})}
}

// Seat puts fixtures at tables of which none has anything against a request of another at
// its table. So a request that is good for its own fixture is good, one that is bad is
// bad for its own fixture alone, and policies of a table may share native objects.
func Seat(t *testing.T, all []*Guest) (tables [][]*Guest) {
	t.Helper()
	for _, g := range all {
		i := slices.IndexFunc(tables, func(table []*Guest) bool {
			return !slices.ContainsFunc(table, func(o *Guest) bool { return g.against(t, o) || o.against(t, g) })
		})
		if i < 0 {
			i, tables = len(tables), append(tables, nil)
		}
		tables[i] = append(tables[i], g)
		g.Table = i
	}
	return tables
}

// against tells that the policies of a fixture deny a request of another one.
func (g *Guest) against(t *testing.T, o *Guest) bool {
	t.Helper()
	return slices.ContainsFunc(o.Cases, func(c fixtures.Case) bool {
		data, err := c.Request()
		if err != nil {
			t.Fatal(err)
		}
		request, err := interp.ParseAdmission(data)
		if err != nil {
			t.Fatal(err)
		}
		results := g.judge.Judge(t.Context(), &interp.Request{
			Admission: request, NamespaceLabels: c.NamespaceLabels, Roles: c.Roles, ClusterRoles: c.ClusterRoles,
		})
		return slices.ContainsFunc(results, func(r interp.RuleResult) bool { return r.Status == interp.Fail || r.Status == interp.Error })
	})
}
