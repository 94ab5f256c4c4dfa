package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/vap"
)

// No two policies have a PolicyTranslation of one name, whatever dots and lengths their
// own names have.
func TestTranslationNames(t *testing.T) {
	long := strings.Repeat("a", 200)
	names := []string{"a", "b", "a.b", "b.a", "a.b.policies.kyverno.io", "clusterpolicies", "a.clusterpolicies", "policies.kyverno.io", long, long + ".a", long + ".b", long + "-" + hashOf(long)}
	of := map[string]v1alpha1.PolicyReference{}
	for _, kind := range sourceKinds() {
		for _, name := range names {
			for _, namespace := range []string{"a", "b", "policies", "clusterpolicies"} {
				ref := v1alpha1.PolicyReference{Group: kind.group, Kind: kind.kind, Name: name}
				if kind.namespaced {
					ref.Namespace = namespace
				}
				got := TranslationName(ref)
				if other, taken := of[got]; taken && other != ref {
					t.Errorf("%s is of %+v and of %+v", got, other, ref)
				}
				if of[got] = ref; len(got) > maxName {
					t.Errorf("%s is too long", got)
				}
			}
		}
	}
}

// Whoever made a policy on everything can delete it, whatever kind it is of.
func TestSourcesCanBeDeleted(t *testing.T) {
	own := vap.OwnObjects([]vap.ResourceRule{{Groups: []string{"*"}, Versions: []string{"*"}, Resources: []string{"*"}, Operations: []string{"*"}}})
	for _, kind := range sourceKinds() {
		spared := slices.ContainsFunc(own, func(r vap.ResourceRule) bool {
			return slices.Contains(r.Groups, kind.group) && slices.Contains(r.Resources, kind.plural) && slices.Contains(r.Operations, "DELETE")
		})
		if spared == kind.exception {
			t.Errorf("%s: its deletion is spared: %t", kind.definition(), spared)
		}
	}
}
