package registration

import "github.com/kvap/kvap/policy"

// A Table is what a cluster serves, as a list.
type Table []Resource

// Resources are those whose kind matches the patterns.
func (t Table) Resources(group, version, kind string) []Resource {
	var out []Resource
	for _, r := range t {
		if policy.Wildcard(group, r.Group) && policy.Wildcard(version, r.Version) && policy.Wildcard(kind, r.Kind) {
			out = append(out, r)
		}
	}
	return out
}
