package vap

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

const (
	maxNameLength  = 253 // a DNS-1123 subdomain
	maxLabelLength = 63
	staticSuffix   = ".static.k8s.io"
)

// objectName makes a DNS-1123 subdomain of at most max bytes from parts of the
// source. Only what is too long gets a hash, which is taken from the whole.
func objectName(max int, parts ...string) string {
	raw := strings.Join(slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "" }), "-")
	name := subdomain(raw)
	if name == "" {
		name = "policy-" + shortHash(raw)
	}
	return shorten(name, raw, max)
}

// ShortName is a name of at most max bytes. One that is too long ends in a hash of itself.
func ShortName(name string, max int) string { return shorten(name, name, max) }

func shorten(name, raw string, max int) string {
	if len(name) <= max {
		return name
	}
	h := "-" + shortHash(raw)
	return strings.TrimRight(name[:max-len(h)], "-.") + h
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// subdomain lowers s and puts a hyphen for what a DNS name cannot hold. Each
// part between dots must begin and end with a letter or digit.
func subdomain(s string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(s), ".") {
		if p := hyphenated(part, isLowerAlnum); p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ".")
}

// conditionNames makes the names of match conditions qualified names, each once.
func conditionNames(names []string) []string {
	out := make([]string, len(names))
	seen := map[string]bool{}
	for i, n := range names {
		base := qualified(n)
		name := base
		for k := 2; seen[name]; k++ {
			suffix := fmt.Sprintf("-%d", k)
			name = base[:min(len(base), maxLabelLength-len(suffix))] + suffix
		}
		seen[name] = true
		out[i] = name
	}
	return out
}

// qualified makes the name part of a qualified name. A slash would begin a
// prefix, which has rules of its own, so it goes as well.
func qualified(s string) string {
	name := hyphenated(s, func(r rune) bool {
		return isLowerAlnum(r) || r >= 'A' && r <= 'Z' || r == '.' || r == '_'
	})
	name = strings.Trim(name, "-._")
	if name == "" {
		name = "condition"
	}
	return strings.TrimRight(shorten(name, s, maxLabelLength), "-._")
}

func hyphenated(s string, keep func(rune) bool) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		if !keep(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}

func isLowerAlnum(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
