package registration

import (
	"slices"
	"strings"
	"testing"
)

// The API server refuses a rule in which a wildcard stands beside what it covers, and
// with it the whole configuration.
func TestNoWildcardBesideWhatItCovers(t *testing.T) {
	at := func(group, version, resource string) ruleTarget {
		return ruleTarget{group, version, resource, namespaced, "CREATE"}
	}
	for _, targets := range [][]ruleTarget{
		{at("", "v1", "pods/*"), at("", "v1", "pods/exec"), at("", "v1", "pods")},
		{at("", "v1", "*"), at("", "v1", "pods"), at("", "v1", "pods/exec")},
		{at("", "v1", "*/*"), at("", "v1", "pods"), at("", "v1", "pods/exec")},
		{at("", "v1", "*/scale"), at("", "v1", "pods/scale"), at("", "v1", "pods")},
		{at("apps", "*", "deployments"), at("apps", "v1", "deployments")},
	} {
		for _, r := range rules(targets) {
			if len(r.APIVersions) > 1 && slices.Contains(r.APIVersions, "*") {
				t.Errorf("%v: versions %v", targets, r.APIVersions)
			}
			for _, wide := range r.Resources {
				for _, narrow := range r.Resources {
					if wide != narrow && covered(wide, narrow) {
						t.Errorf("%v: %s covers %s in %v", targets, wide, narrow, r.Resources)
					}
				}
			}
		}
	}
}

// covered tells whether a resource with a wildcard takes in another one.
func covered(wide, narrow string) bool {
	name, sub, hasSub := strings.Cut(wide, "/")
	otherName, otherSub, otherHasSub := strings.Cut(narrow, "/")
	return (name == "*" || name == otherName) && (wide == "*/*" || hasSub == otherHasSub && (sub == "*" || sub == otherSub))
}
