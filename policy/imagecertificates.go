package policy

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"

	"github.com/kvap/kvap/diag"
)

// maxChain is how many certificates a text may have. To try the ways between many is work that who
// writes a policy should not ask of each request.
const maxChain = 10

// chain refuses a text with too many certificates. A text with a variable is known later.
func (r *reader) chain(t Text, what string) {
	if count := len(pemBlocks(t.Value)); count > maxChain {
		r.fail(t.Pos, diag.OutOfRange, "%s has more than %d certificates; put the root there, and what is needed below it", what, maxChain)
	}
}

// stampers refuses the certificates of a timestamp authority without a root, which prove nothing.
func (r *reader) stampers(t Text, what string) {
	r.chain(t, what)
	if t.Value == "" || strings.Contains(t.Value, "{{") {
		return
	}
	blocks := pemBlocks(t.Value)
	if len(blocks) > maxChain {
		return
	}
	for _, b := range blocks {
		if c, err := x509.ParseCertificate(b.Bytes); err == nil && c.CheckSignatureFrom(c) == nil {
			return
		}
	}
	r.fail(t.Pos, diag.OutOfRange, "%s has no root: none of its certificates signed itself", what)
}

// pemBlocks are the blocks of a text, which may be in base64 as a whole; one more than may be
// there at most.
func pemBlocks(text string) (out []*pem.Block) {
	if !strings.Contains(text, "-----BEGIN") {
		if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil {
			text = string(plain)
		}
	}
	for rest := []byte(text); len(out) <= maxChain; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		out = append(out, b)
	}
	return out
}
