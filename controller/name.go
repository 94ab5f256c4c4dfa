package controller

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is the length of a DNS-1123 subdomain.
const maxName = 253

// shortName is name, with a hash in place of the end where it is too long.
func shortName(name string) string {
	if len(name) <= maxName {
		return name
	}
	h := "-" + hashOf(name)
	return strings.TrimRight(name[:maxName-len(h)], "-.") + h
}

// hashOf is a few digits that tell a text from others.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
