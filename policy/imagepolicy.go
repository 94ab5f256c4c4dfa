package policy

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// An ImagePolicy is what an ImageValidatingPolicy says beside what a ValidatingPolicy does:
// which images it is about, and who may be asked for in its expressions.
type ImagePolicy struct {
	Pos          diag.Pos
	References   []ImageReference // any of them will do; all images if there are none
	Extractors   []CEL            // images: lists of images by name
	Attestors    []CELAttestor
	Attestations []CELAttestation
	Credentials  *Node
	// MutateDigest, VerifyDigest and Required are true where they are absent.
	MutateDigest, VerifyDigest, Required bool

	unproven *Text // the first that nothing here proves
}

// An ImageReference selects images by a pattern, or by an expression about ref.
type ImageReference struct {
	Pos              diag.Pos
	Glob, Expression string
}

// A CELText is a text, or an expression that gives it.
type CELText struct {
	Pos               diag.Pos
	Value, Expression string
}

// Empty tells that it is neither.
func (t CELText) Empty() bool { return t.Value == "" && t.Expression == "" }

// A CELAttestor is an attestor with a name. It has a Key, a Certificate or a Chain, or
// Identities. One of Notary has a Chain, and perhaps Stamps.
type CELAttestor struct {
	Pos                     diag.Pos
	Name                    string
	Notary                  bool
	Key, Certificate, Chain CELText
	Stamps                  CELText // of Notary: certificates of a timestamp authority
	Hash                    string
	Identities              []Identity // any of them may have signed
	Roots                   string
	Extensions              []Pair
	// TrustedRoot is a trusted root of Sigstore in place of the public one.
	TrustedRoot CELText
	Log         SignatureLog
	IgnoreSCT   bool
	Annotations []Pair
	// Repository is where signatures are, TagPrefix what their tags begin with, and
	// PullSecrets are those for it.
	Repository, TagPrefix string
	PullSecrets           []string
}

// An Identity is whom a certificate is for, word by word or by regular expressions.
type Identity struct {
	Issuer, IssuerRegExp, Subject, SubjectRegExp string
}

// A CELAttestation is a type of attestations with a name.
type CELAttestation struct {
	Pos        diag.Pos
	Name, Type string
	Referrer   bool // an artifact that refers to the image, and no in-toto statement
}

// ImagePolicy is what an ImageValidatingPolicy says of images; nil for other policies.
func (p *Policy) ImagePolicy() *ImagePolicy {
	if p.Validating == nil {
		return nil
	}
	return p.Validating.Images
}

// PinsImages tells of a policy that puts digests in place of tags.
func (p *Policy) PinsImages() bool {
	if images := p.ImagePolicy(); images != nil {
		return images.MutateDigest && p.Validating.Mode != "JSON"
	}
	for _, rule := range p.Rules {
		if rule.PinsImages() {
			return true
		}
	}
	return false
}

// VerifiesMore is what an ImageValidatingPolicy asks of images that nothing here proves, and
// where it does; false where there is no such thing.
func (p *Policy) VerifiesMore() (what Text, more bool) {
	if images := p.ImagePolicy(); images != nil && images.unproven != nil {
		return *images.unproven, true
	}
	return Text{}, false
}

// imagePolicyReader reads what an ImageValidatingPolicy says of images.
type imagePolicyReader struct {
	*reader
	policy *ImagePolicy
}

// lacks notes what nothing here proves.
func (r imagePolicyReader) lacks(pos diag.Pos, what string) {
	if r.policy.unproven == nil {
		r.policy.unproven = &Text{Pos: pos, Value: what}
	}
}

func (r *reader) imageValidatingSpec(p *Policy, n *Node) {
	o := r.object(n, "a policy's spec")
	images := &ImagePolicy{Pos: n.Pos, MutateDigest: true, VerifyDigest: true, Required: true}
	v := &Validating{Pos: n.Pos, Images: images}
	p.Validating = v
	read := imagePolicyReader{r, images}
	if fp := o.choice("failurePolicy", "Fail", "Ignore"); fp != "" {
		p.FailurePolicy = FailurePolicy(fp)
	}
	if n := o.take("evaluation"); n != nil {
		e := r.object(n, "evaluation")
		v.Evaluation = r.evaluation(p, e)
		e.end()
	}
	if v.Mode == "" {
		v.Mode = "Kubernetes"
	}
	if constraints := o.take("matchConstraints"); constraints != nil {
		v.MatchConstraints = r.matchConstraints(constraints)
	}
	v.MatchConditions = each(o.list("matchConditions"), r.matchCondition)
	v.Variables = each(o.list("variables"), r.celVariable)
	images.References = each(o.list("matchImageReferences"), r.imageReference)
	images.Extractors = each(o.list("images"), func(n *Node) CEL { return r.namedCEL(n, "an entry of images", "name", "expression") })
	images.Attestors = each(r.list(o.require("attestors")), read.attestor)
	images.Attestations = each(o.list("attestations"), read.attestation)
	if images.Credentials = o.take("credentials"); images.Credentials != nil {
		r.registryCredentials(images.Credentials)
	}
	if c := o.take("validationConfigurations"); c != nil {
		b := r.object(c, "validationConfigurations")
		images.MutateDigest, images.VerifyDigest, images.Required = b.boolean("mutateDigest", true), b.boolean("verifyDigest", true), b.boolean("required", true)
		b.end()
	}
	v.Validations = each(r.list(o.require("validations")), r.celValidation)
	v.AuditAnnotations = each(o.list("auditAnnotations"), r.auditAnnotation)
	r.validationActions(p, o)
	v.Autogen, _ = r.autogen(o.take("autogen"), "")
	r.celWebhook(o.take("webhookConfiguration"))
	o.end()
}

func (r *reader) imageReference(n *Node) ImageReference {
	o := r.object(n, "an entry of matchImageReferences")
	out := ImageReference{Pos: n.Pos, Glob: o.str("glob"), Expression: o.str("expression")}
	o.end()
	switch {
	case o.wrong:
	case out.Glob == "" && out.Expression == "":
		r.fail(n.Pos, diag.Missing, "an entry of matchImageReferences needs a glob or an expression")
	case out.Glob != "" && out.Expression != "":
		r.fail(n.Pos, diag.Conflict, "an entry of matchImageReferences has a glob and an expression; make two entries of it")
	}
	return out
}

func (r imagePolicyReader) attestor(n *Node) CELAttestor {
	o := r.object(n, "an attestor")
	a := CELAttestor{Pos: n.Pos, Name: o.needText("name").Value}
	cosign, notary := o.take("cosign"), o.take("notary")
	if cosign != nil {
		r.cosign(&a, cosign)
	}
	if notary != nil {
		b := r.object(notary, "notary")
		a.Notary, a.Chain, a.Stamps = true, r.celText(b, "certs"), r.celText(b, "tsaCerts")
		b.end()
		if a.Chain.Empty() && !b.wrong {
			r.fail(notary.Pos, diag.Missing, "notary needs certs; without one anybody could sign")
		}
		r.chain(Text{Pos: a.Chain.Pos, Value: a.Chain.Value}, "certs")
		r.stampers(Text{Pos: a.Stamps.Pos, Value: a.Stamps.Value}, "tsaCerts")
	}
	o.end()
	if !o.wrong && (cosign == nil) == (notary == nil) {
		r.fail(n.Pos, diag.Missing, "an attestor needs cosign or notary, and not both")
	}
	return a
}

func (r imagePolicyReader) celText(o *object, key string) CELText {
	n := o.take(key)
	if n == nil {
		return CELText{}
	}
	b := r.object(n, key)
	t := CELText{Pos: n.Pos, Value: b.str("value"), Expression: b.str("expression")}
	b.end()
	return t
}

func (r imagePolicyReader) cosign(a *CELAttestor, n *Node) {
	o := r.object(n, "cosign")
	key, keyless, certificate := o.take("key"), o.take("keyless"), o.take("certificate")
	if key != nil {
		r.celKey(a, key)
	}
	if keyless != nil {
		r.identities(a, keyless)
	}
	if certificate != nil {
		b := r.object(certificate, "certificate")
		a.Certificate, a.Chain = r.celText(b, "cert"), r.celText(b, "certChain")
		b.end()
		r.chain(Text{Pos: a.Certificate.Pos, Value: a.Certificate.Value}, "cert")
		r.chain(Text{Pos: a.Chain.Pos, Value: a.Chain.Value}, "certChain")
		if a.Certificate.Empty() && a.Chain.Empty() && !b.wrong {
			r.fail(certificate.Pos, diag.Missing, "a certificate needs cert or certChain; without one anybody could sign")
		}
	}
	if s := o.take("source"); s != nil {
		b := r.object(s, "source")
		a.Repository, a.TagPrefix = b.str("repository"), b.str("tagPrefix")
		a.PullSecrets = each(b.list("PullSecrets"), func(n *Node) string {
			one := r.object(n, "an entry of PullSecrets")
			defer one.end()
			return one.str("name")
		})
		b.end()
	}
	r.celLogs(a, o.take("ctlog"))
	a.TrustedRoot = r.celText(o, "trustedRoot")
	if tuf := o.take("tuf"); tuf != nil && a.TrustedRoot.Empty() {
		r.lacks(tuf.Pos, "signatures by a TUF repository of one's own (put its trusted root into trustedRoot)")
	}
	a.Annotations = o.pairs("annotations")
	o.end()
	switch count := given(key, keyless, certificate); {
	case o.wrong:
	case count == 0:
		r.fail(n.Pos, diag.Missing, "cosign needs key, keyless or certificate; without one anybody could sign")
	case count > 1:
		r.fail(n.Pos, diag.Conflict, "cosign has more than one of key, keyless and certificate; make attestors of them")
	}
}

// given is how many nodes are there.
func given(nodes ...*Node) (count int) {
	for _, n := range nodes {
		if n != nil {
			count++
		}
	}
	return count
}

func (r imagePolicyReader) celKey(a *CELAttestor, n *Node) {
	o := r.object(n, "key")
	data, expression, kms := o.text("data"), o.text("expression"), o.text("kms")
	a.Key = CELText{Pos: n.Pos, Value: data.Value, Expression: expression.Value}
	a.Hash = o.choice("hashAlgorithm", signatureAlgorithms()...)
	o.end()
	switch {
	case o.wrong:
	case kms.Value != "":
		r.lacks(kms.Pos, "keys of a key management service")
	case a.Key.Empty():
		r.fail(n.Pos, diag.Missing, "a key needs data or an expression")
	case data.Value != "" && expression.Value != "":
		r.fail(n.Pos, diag.Conflict, "a key has data and an expression; remove one")
	case data.Value != "" && !strings.Contains(data.Value, "-----BEGIN"):
		r.lacks(data.Pos, "keys of a key management service, a file or a URL; put the public key here")
	}
}

func (r imagePolicyReader) identities(a *CELAttestor, n *Node) {
	o := r.object(n, "keyless")
	a.Identities = each(r.list(o.require("identities")), func(n *Node) Identity {
		b := r.object(n, "an identity")
		i := Identity{Issuer: b.str("issuer"), IssuerRegExp: b.str("issuerRegExp"), Subject: b.str("subject"), SubjectRegExp: b.str("subjectRegExp")}
		if t := b.text("subjectExpression"); t.Value != "" { // which Kyverno does not read
			r.lacks(t.Pos, "identities by an expression (subjectExpression)")
		}
		b.end()
		if i.Issuer+i.IssuerRegExp+i.Subject+i.SubjectRegExp == "" {
			r.lacks(n.Pos, "signatures by anybody (name an issuer and a subject)")
		}
		return i
	})
	a.Roots, a.Extensions = o.str("roots"), o.pairs("additionalExtensions")
	o.end()
	if len(a.Identities) == 0 && !o.wrong {
		r.lacks(n.Pos, "signatures by anybody (name an issuer and a subject)")
	}
}

func (r imagePolicyReader) celLogs(a *CELAttestor, n *Node) {
	if n == nil {
		return
	}
	o := r.object(n, "ctlog")
	url := o.str("url")
	a.Log = SignatureLog{Ignored: o.boolean("insecureIgnoreTlog", false), Key: o.text("rekorPubKey"), Stamps: o.text("tsaCertChain"), Certificates: o.text("ctLogPubKey")}
	a.IgnoreSCT = o.boolean("insecureIgnoreSCT", false)
	o.end()
	r.stampers(a.Log.Stamps, "tsaCertChain")
	if url == "" && !a.Log.Ignored && !o.wrong {
		r.fail(n.Pos, diag.Missing, "ctlog needs url, or insecureIgnoreTlog: true; Kyverno refuses it without")
	}
}

func (r imagePolicyReader) attestation(n *Node) CELAttestation {
	o := r.object(n, "an attestation")
	a := CELAttestation{Pos: n.Pos, Name: o.needText("name").Value}
	kind := func(key string) *Node {
		n := o.take(key)
		if n != nil {
			b := r.object(n, key)
			a.Type = b.needText("type").Value
			b.end()
		}
		return n
	}
	inToto, referrer := kind("intoto"), kind("referrer")
	a.Referrer = referrer != nil
	o.end()
	if !o.wrong && (inToto == nil) == (referrer == nil) {
		r.fail(n.Pos, diag.Missing, "an attestation needs intoto or referrer, and not both")
	}
	return a
}

// Expressions are those about images, and of attestors.
func (p *ImagePolicy) Expressions() (out []string) {
	if p == nil {
		return nil
	}
	for _, r := range p.References {
		out = append(out, r.Expression)
	}
	for _, e := range p.Extractors {
		out = append(out, e.Expression)
	}
	for _, a := range p.Attestors {
		out = append(out, a.Key.Expression, a.Certificate.Expression, a.Chain.Expression, a.Stamps.Expression, a.TrustedRoot.Expression)
	}
	return slices.DeleteFunc(out, func(text string) bool { return text == "" })
}
