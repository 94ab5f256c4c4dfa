package signers

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/policy"
)

// soon is how long before its end a certificate is told of.
const soon = 30 * 24 * time.Hour

// Check is what to tell of who must have signed images by a policy.
func Check(p *policy.Policy, now time.Time) diag.List {
	c := &checker{now: now}
	if of := p.ImagePolicy(); of != nil {
		for i := range of.Attestors {
			c.celAttestor(&of.Attestors[i])
		}
	}
	for _, rule := range p.Rules {
		for _, v := range rule.VerifyImages {
			c.sets(v.Type, v.Attestors)
			for _, a := range v.Attestations {
				c.sets(v.Type, a.Attestors)
			}
		}
	}
	return c.found.Sort()
}

// Verifies tells of a policy that Check looks at.
func Verifies(p *policy.Policy) bool {
	if p.ImagePolicy() != nil {
		return true
	}
	for _, rule := range p.Rules {
		if len(rule.VerifyImages) > 0 {
			return true
		}
	}
	return false
}

type checker struct {
	now   time.Time
	found diag.List
}

func (c *checker) sets(kind string, sets []*policy.AttestorSet) {
	for _, s := range sets {
		for _, e := range s.Entries {
			c.attestor(kind, e)
		}
	}
}

func (c *checker) attestor(kind string, a *policy.Attestor) {
	switch {
	case a.Keys != nil:
		c.log(a.Keys.Log)
		if a.Keys.Secret != "" {
			c.secret(a.Keys)
			return
		}
		c.keys(a.Keys.Public)
	case a.Certificates != nil:
		c.log(a.Certificates.Log)
		timed := timedBy(a.Certificates.Log)
		if kind == "Notary" {
			timed = a.Certificates.Log.Stamps.Value != ""
		}
		c.certificates(a.Certificates.Chain, timed)
		if a.Certificates.Chain.Value != "" && kind != "Notary" {
			c.certificates(a.Certificates.Certificate, false) // it must be valid when kvap reads it
		} else {
			c.certificates(a.Certificates.Certificate, kind != "Notary" || timed) // of which only the key counts
		}
	case a.Keyless != nil:
		k := a.Keyless
		c.log(k.Log)
		c.certificates(k.Roots, timedBy(k.Log))
		c.identity(k.Pos, policy.Identity{Issuer: k.Issuer.Value, IssuerRegExp: k.IssuerRegExp.Value, Subject: k.Subject.Value, SubjectRegExp: k.SubjectRegExp.Value})
		if k.Roots.Value == "" {
			c.unpinned(k.Pos, "roots")
		}
	case a.Set != nil:
		c.sets(kind, []*policy.AttestorSet{a.Set})
	}
}

func (c *checker) celAttestor(a *policy.CELAttestor) {
	c.log(a.Log)
	c.keys(textOf(a.Key))
	timed := timedBy(a.Log)
	if a.Notary {
		timed = !a.Stamps.Empty()
	}
	c.certificates(textOf(a.Chain), timed)
	c.certificates(textOf(a.Certificate), a.Chain.Empty())
	c.certificates(textOf(a.Stamps), true)
	c.certificates(policy.Text{Pos: a.Pos, Value: a.Roots}, timed)
	for _, i := range a.Identities {
		c.identity(a.Pos, i)
	}
	if len(a.Identities) > 0 && a.Roots == "" && a.TrustedRoot.Empty() {
		c.unpinned(a.Pos, "trustedRoot")
	}
	if text := a.TrustedRoot.Value; text != "" {
		if _, err := images.ReadTrust([]byte(text)); err != nil {
			c.wrong(a.TrustedRoot.Pos, err)
		}
	}
}

// timedBy tells that others than the signer say when something was signed.
func timedBy(l policy.SignatureLog) bool { return !l.Ignored || l.Stamps.Value != "" }

func textOf(t policy.CELText) policy.Text { return policy.Text{Pos: t.Pos, Value: t.Value} }

func unknown(t policy.Text) bool { return t.Value == "" || strings.Contains(t.Value, "{{") }

func (c *checker) wrong(pos diag.Pos, err error) {
	c.found = append(c.found, diag.Errorf(pos, diag.UnreadableSigner, "no image passes, since this cannot be read: %v", err))
}

// keys looks at the public keys of a text.
func (c *checker) keys(t policy.Text) {
	if unknown(t) || !strings.Contains(t.Value, "-----BEGIN") {
		return // it is known later, or stays with Kyverno
	}
	count := 0
	for rest := []byte(t.Value); ; count++ {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		until, err := images.Key(string(pem.EncodeToMemory(b)))
		if err != nil {
			c.wrong(t.Pos, err)
			continue
		}
		c.ends(t.Pos, "the public key", until, false)
	}
	if count == 0 {
		c.wrong(t.Pos, fmt.Errorf("there is no whole PEM block in it"))
	}
}

func (c *checker) log(l policy.SignatureLog) {
	for _, t := range []policy.Text{l.Key, l.Certificates} {
		if unknown(t) {
			continue
		}
		if until, err := images.Key(t.Value); err != nil {
			c.wrong(t.Pos, err)
		} else {
			c.ends(t.Pos, "the key of the log", until, true)
		}
	}
	c.certificates(l.Stamps, true)
}

// certificates looks at those of a text. What was signed while they were valid still counts where
// others say when that was.
func (c *checker) certificates(t policy.Text, timed bool) {
	if unknown(t) {
		return
	}
	all, lists, err := images.Certificates(t.Value)
	if err != nil {
		c.wrong(t.Pos, err)
		return
	}
	for _, one := range all {
		c.ends(t.Pos, "the certificate of "+subjectOf(one), one.NotAfter, timed)
	}
	c.ends(t.Pos, "the list of revoked certificates", lists, false)
}

func subjectOf(c *x509.Certificate) string {
	if text := c.Subject.String(); text != "" {
		return text
	}
	return "nobody"
}

// ends tells of what has ended, and of what will soon.
func (c *checker) ends(pos diag.Pos, what string, at time.Time, timed bool) {
	date := at.UTC().Format(time.DateOnly)
	switch {
	case at.IsZero() || at.Sub(c.now) > soon:
	case at.After(c.now):
		c.found = append(c.found, diag.Warnf(pos, diag.SignerEnds, "%s ends on %s; put the next one there in time", what, date))
	case timed:
		c.found = append(c.found, diag.Warnf(pos, diag.SignerEnds, "%s ended on %s; what was signed since does not count", what, date))
	default:
		c.found = append(c.found, diag.Errorf(pos, diag.SignerEnds, "%s ended on %s; no image passes by it", what, date))
	}
}

// identity tells of one that others than the author thinks of may have.
func (c *checker) identity(pos diag.Pos, i policy.Identity) {
	if i.Issuer+i.IssuerRegExp+i.Subject+i.SubjectRegExp == "" {
		return // which stays with Kyverno
	}
	switch {
	case i.Subject+i.SubjectRegExp == "":
		c.loose(pos, "anybody whom %s knows may sign; name a subject", quoted(i.Issuer, i.IssuerRegExp))
	case i.Issuer+i.IssuerRegExp == "":
		c.loose(pos, "whoever any issuer calls %s may sign; name the issuer", quoted(i.Subject, i.SubjectRegExp))
	}
	for _, expression := range []string{i.IssuerRegExp, i.SubjectRegExp} {
		if expression != "" && !strings.Contains(expression, "{{") && (!strings.HasPrefix(expression, "^") || !strings.HasSuffix(expression, "$")) {
			c.loose(pos, "the regular expression %q finds a part of a longer name too; begin it with ^ and end it with $", expression)
		}
	}
}

func quoted(text, otherwise string) string {
	if text == "" {
		text = otherwise
	}
	return fmt.Sprintf("%q", text)
}

func (c *checker) loose(pos diag.Pos, format string, args ...any) {
	c.found = append(c.found, diag.Warnf(pos, diag.LooseIdentity, format, args...))
}

func (c *checker) unpinned(pos diag.Pos, field string) {
	c.found = append(c.found, diag.Notef(pos, diag.UnpinnedRoot, "who issues certificates is what the trusted root says: the public Sigstore's when kvap was built; pin it by %s, or by --sigstore-trusted-root and its digest", field))
}

func (c *checker) secret(k *policy.StaticKeys) {
	c.found = append(c.found, diag.Notef(k.Pos, diag.KeyInSecret, "the key is cosign.pub of the Secret %s/%s; let kvap read this one Secret, by a Role with resourceNames: [%s]", k.SecretNamespace, k.Secret, k.Secret))
}
