package policy

import "strings"

// The lengths of names, in bytes.
const (
	maxLabel     = 63
	maxSubdomain = 253
)

// IsSubdomain tells whether s is a DNS subdomain of RFC 1123, as the names of
// policies are.
func IsSubdomain(s string) bool {
	if len(s) > maxSubdomain {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !isLabel(part) {
			return false
		}
	}
	return true
}

// IsLabel tells whether s is a DNS label of RFC 1123, as the names of namespaces are.
func IsLabel(s string) bool { return len(s) <= maxLabel && isLabel(s) }

// isLabel is IsLabel at any length: the parts of a subdomain may be longer.
func isLabel(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
