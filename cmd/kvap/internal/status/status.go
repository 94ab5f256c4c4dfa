package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
)

// A Snapshot is what was read of a cluster.
type Snapshot struct {
	Now      time.Time
	Policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	Bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// Params says what the bindings with a paramRef find, by the name of the binding.
	// One that is missing here could not be asked for.
	Params  map[string]ResolvedParams
	Sources []*Source
	// Exceptions are those that count for policies of which no controller tells.
	Exceptions []*policy.Exception
	// Translations are what a controller says, where there is one. Controller tells that
	// the cluster keeps them, also where there is none of a policy.
	Translations []*v1alpha1.PolicyTranslation
	Controller   bool
	// Migrations are the records of policies that are on their way from Kyverno.
	Migrations []*v1alpha1.Migration
	// Schemas are the types of the cluster's release.
	Schemas *schema.Set
	// Compile are the choices by which the sources are compiled.
	Compile compile.Options
	Filter  Filter
}

// ResolvedParams are what a paramRef leads to.
type ResolvedParams struct {
	Found []string // for instance team/limits
	// Unserved tells that the API server knows no such kind.
	Unserved bool
}

// Of reads the health of everything in the cluster.
func Of(c Snapshot) report.Status {
	natives, lost := c.natives()
	policies := c.sources()
	for _, n := range natives {
		for i, m := range n.translation.Members {
			policies.owner(m).claim(n, i)
		}
	}
	for _, m := range c.Migrations {
		policies.migrated(m)
	}
	var out report.Status
	for _, p := range policies.all {
		if c.Filter.policy(p) {
			out.Policies = append(out.Policies, p.status(c.Now, c.Exceptions))
		}
	}
	out.Policies = append(out.Policies, c.cleanups()...)
	for _, n := range natives {
		if len(n.translation.Members) == 0 && !n.canary() && c.Filter.matches(n.Name, "", n.Labels) {
			out.Unmanaged = append(out.Unmanaged, n.unmanaged())
		}
	}
	for _, n := range lost {
		if c.Filter.matches(n.Name, "", nil) {
			out.Unmanaged = append(out.Unmanaged, n)
		}
	}
	slices.SortStableFunc(out.Policies, func(a, b report.PolicyStatus) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	slices.SortStableFunc(out.Unmanaged, func(a, b report.NativeStatus) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// A Filter says what of a cluster is to be told. The zero value is everything.
type Filter struct {
	Names     []string        // of policies
	Namespace string          // of namespaced policies; those that have none are told as well
	Labels    labels.Selector // of the source, or where that is not there of what was made from it
}

func (f Filter) matches(name, namespace string, has map[string]string) bool {
	switch {
	case len(f.Names) > 0 && !slices.Contains(f.Names, name):
		return false
	case f.Namespace != "" && namespace != "" && namespace != f.Namespace:
		return false
	}
	return f.Labels == nil || f.Labels.Matches(labels.Set(has))
}

func (f Filter) policy(s *listedPolicy) bool {
	namespace, name, _ := s.title()
	if s.source != nil {
		return f.matches(name, namespace, s.source.Policy.Labels)
	}
	return slices.ContainsFunc(s.claims, func(c claim) bool { return f.matches(name, namespace, c.Labels) })
}
