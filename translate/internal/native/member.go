package native

import "github.com/kvap/kvap/policy"

// MemberName is the policy's name, with its namespace where it has one.
func MemberName(p *policy.Policy) string {
	if p.Namespaced() {
		return p.Namespace + "/" + p.Name
	}
	return p.Name
}
