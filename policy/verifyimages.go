package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
)

// An ImageVerification is an entry of verifyImages: which images it is about, who must have
// signed them, and what must be attested of them.
type ImageVerification struct {
	Pos          diag.Pos
	Type         string // Cosign, SigstoreBundle or Notary
	References   []string
	Skip         []Text
	Attestors    []*AttestorSet // all must hold
	Attestations []*Attestation // all must hold
	Repository   string
	Annotations  []Pair
	// MutateDigest, VerifyDigest, Required and UseCache are true where they are absent.
	MutateDigest, VerifyDigest, Required, UseCache bool
	Action                                         Action // "" when absent
	Credentials                                    *Node
	Validate                                       *ImageValidation

	unproven *Text // the first that nothing here proves
}

// An ImageValidation is validate of an entry of verifyImages.
type ImageValidation struct {
	Pos     diag.Pos
	Message string
	Deny    *Deny
}

// An Attestation is what must be attested, by whom, and what must hold of it.
type Attestation struct {
	Pos        diag.Pos
	Name, Type string
	Attestors  []*AttestorSet
	Conditions []*Conditions
}

// An AttestorSet holds where so many of its entries do; all where Count is 0.
type AttestorSet struct {
	Pos     diag.Pos
	Count   int
	Entries []*Attestor
}

// An Attestor signs by a key, by certificates or without keys, or is a set of attestors.
type Attestor struct {
	Pos          diag.Pos
	Keys         *StaticKeys
	Certificates *Certificates
	Keyless      *Keyless
	Set          *AttestorSet
	Annotations  []Pair
	Repository   string
}

// StaticKeys are public keys: PEM, perhaps by a variable, or in a Secret.
type StaticKeys struct {
	Pos                     diag.Pos
	Public                  Text
	SecretNamespace, Secret string // the key is cosign.pub of its data
	Algorithm               string
	Log                     SignatureLog
}

// Certificates are those of who signs, or of the authorities over them.
type Certificates struct {
	Pos         diag.Pos
	Certificate Text
	Chain       Text
	Log         SignatureLog
	IgnoreSCT   bool // no log of certificates need know of those under the chain
}

// A Keyless attestor signs by a certificate for an identity.
type Keyless struct {
	Pos                                          diag.Pos
	Issuer, IssuerRegExp, Subject, SubjectRegExp Text
	Roots                                        Text // PEM; empty for those of the public Sigstore
	Log                                          SignatureLog
	IgnoreSCT                                    bool // no log of certificates need know of the certificate
	Extensions                                   []Pair
}

// A SignatureLog is who says when something was signed, and knows of it: a transparency log, a
// timestamp authority, and a log of certificates.
type SignatureLog struct {
	Ignored bool // no transparency log need know of it
	Key     Text // the public key of that log; empty for the public one
	// Stamps are the certificates of a timestamp authority, which must have seen the signature.
	Stamps Text
	// Certificates is the public key of a log of certificates; empty for the public ones.
	Certificates Text
}

// VerifiesMore is what a rule asks of images that nothing here proves, and where it does;
// false where there is no such thing.
func (rule *Rule) VerifiesMore() (what Text, more bool) {
	for _, v := range rule.VerifyImages {
		if v.unproven != nil {
			return *v.unproven, true
		}
	}
	return Text{}, false
}

// ImageAction is the action of a rule that verifies images: Enforce if that of any entry is,
// or else that of the first; "" where it is the policy's.
func (rule *Rule) ImageAction() Action {
	for _, v := range rule.VerifyImages {
		if v.Action == Enforce {
			return Enforce
		}
	}
	if len(rule.VerifyImages) > 0 {
		return rule.VerifyImages[0].Action
	}
	return ""
}

// auditedPins refuses an entry that changes objects and only audits, as Kyverno does when such a
// policy is created. The action of an entry counts for those behind it that have none.
func (r *reader) auditedPins(p *Policy, rule *Rule) {
	action := p.Action
	for _, v := range rule.VerifyImages {
		if v.Action != "" {
			action = v.Action
		}
		if action == Audit && v.MutateDigest {
			r.fail(v.Pos, diag.Conflict, "an entry that audits cannot put digests into images, which mutateDigest asks for (true by default); write mutateDigest: false, or failureAction: Enforce")
		}
	}
}

// PinsImages tells of a rule that puts digests in place of tags.
func (rule *Rule) PinsImages() bool {
	for _, v := range rule.VerifyImages {
		if v.MutateDigest {
			return true
		}
	}
	return false
}

// imageReader reads an entry of verifyImages.
type imageReader struct {
	*reader
	entry *ImageVerification
}

// lacks notes what nothing here proves.
func (r imageReader) lacks(pos diag.Pos, what string) {
	if r.entry.unproven == nil {
		r.entry.unproven = &Text{Pos: pos, Value: what}
	}
}

func (r *reader) imageVerification(n *Node) *ImageVerification {
	o := r.object(n, "an entry of verifyImages")
	v := &ImageVerification{Pos: n.Pos}
	read := imageReader{r, v}
	if v.Type = o.choice("type", "Cosign", "SigstoreBundle", "Notary"); v.Type == "" {
		v.Type = "Cosign"
	}
	v.Action = r.action(o.take("failureAction"), "")
	v.References, v.Skip = o.strings("imageReferences"), o.texts("skipImageReferences")
	v.Attestors = each(o.list("attestors"), read.attestorSet)
	v.Attestations = each(o.list("attestations"), read.attestation)
	v.MutateDigest, v.VerifyDigest = o.boolean("mutateDigest", true), o.boolean("verifyDigest", true)
	v.Required, v.UseCache = o.boolean("required", true), o.boolean("useCache", true)
	if o.boolean("cosignOCI11", false) {
		read.lacks(o.pos("cosignOCI11"), "signatures in referrers (cosignOCI11)")
	}
	if v.Credentials = o.take("imageRegistryCredentials"); v.Credentials != nil {
		r.registryCredentials(v.Credentials)
	}
	if b := o.take("validate"); b != nil {
		v.Validate = r.imageValidation(b)
	}
	v.Repository, v.Annotations = o.str("repository"), o.pairs("annotations")
	read.formsBefore(o)
	o.end()
	if v.Type == "Notary" {
		read.notary()
	}
	for _, a := range v.Attestations {
		if len(a.Attestors) == 0 && len(v.Attestors) == 0 {
			read.lacks(a.Pos, "attestations by anybody (name attestors)")
		}
	}
	return v
}

// notary refuses attestors that no signature of Notary is by.
func (r imageReader) notary() {
	for _, s := range r.entry.Attestors {
		r.byCertificates(s)
	}
	for _, a := range r.entry.Attestations {
		for _, s := range a.Attestors {
			r.byCertificates(s)
		}
	}
}

// byCertificates refuses what no signature of Notary is by.
func (r imageReader) byCertificates(s *AttestorSet) {
	for _, e := range s.Entries {
		switch {
		case e.Keys != nil:
			r.fail(e.Keys.Pos, diag.Conflict, "signatures of the type Notary are by certificates, not by keys")
		case e.Keyless != nil:
			r.fail(e.Keyless.Pos, diag.Conflict, "signatures of the type Notary are by certificates; put those of the authority there")
		case e.Set != nil:
			r.byCertificates(e.Set)
		}
	}
}

func (r *reader) imageValidation(n *Node) *ImageValidation {
	o := r.object(n, "validate")
	out := &ImageValidation{Pos: n.Pos, Message: o.str("message"), Deny: r.deny(o.take("deny"))}
	o.end()
	return out
}

// formsBefore reads the forms before there were attestors: one image, and one key or identity
// for its signatures and attestations.
func (r imageReader) formsBefore(o *object) {
	if image := o.str("image"); image != "" {
		r.entry.References = append(r.entry.References, image)
	}
	key, issuer := o.text("key"), o.text("issuer")
	keyless := &Keyless{Pos: issuer.Pos, Issuer: issuer, Subject: o.text("subject"), Roots: o.text("roots")}
	keyless.Extensions = o.pairs("additionalExtensions")
	one := &Attestor{Pos: key.Pos, Keys: &StaticKeys{Pos: key.Pos, Public: key}}
	switch {
	case key.Value != "":
		r.publicKey(key)
	case issuer.Value != "":
		one = &Attestor{Pos: issuer.Pos, Keyless: keyless}
	default:
		return
	}
	set := &AttestorSet{Pos: one.Pos, Entries: []*Attestor{one}}
	if len(r.entry.Attestations) == 0 {
		r.entry.Attestors = append(r.entry.Attestors, set)
	}
	for _, a := range r.entry.Attestations {
		if len(a.Attestors) == 0 {
			a.Attestors = []*AttestorSet{set}
		}
	}
}

func (r imageReader) attestation(n *Node) *Attestation {
	o := r.object(n, "an attestation")
	a := &Attestation{Pos: n.Pos, Name: o.str("name"), Type: o.str("type")}
	if before := o.str("predicateType"); a.Type == "" {
		a.Type = before
	}
	a.Attestors = each(o.list("attestors"), r.attestorSet)
	for _, s := range a.Attestors {
		r.annotated(s)
	}
	a.Conditions = each(o.list("conditions"), r.conditions)
	o.end()
	return a
}

// annotated notes annotations that who attests must have set. There are none in an attestation.
func (r imageReader) annotated(s *AttestorSet) {
	for _, e := range s.Entries {
		if len(e.Annotations) > 0 {
			r.lacks(e.Pos, "annotations of attestations")
		}
		if e.Set != nil {
			r.annotated(e.Set)
		}
	}
}

func (r imageReader) attestorSet(n *Node) *AttestorSet {
	o := r.object(n, "a set of attestors")
	s := &AttestorSet{Pos: n.Pos}
	count := o.node.Get("count")
	o.whole("count", 0, 1<<31)
	if count != nil && count.Kind == Int {
		s.Count = int(count.Int)
	}
	s.Entries = each(o.list("entries"), r.attestor)
	o.end()
	switch {
	case o.wrong:
	case len(s.Entries) == 0:
		r.fail(n.Pos, diag.Missing, "a set of attestors needs an entry")
	case count != nil && s.Count > len(s.Entries) && !s.mayBeSplit():
		r.fail(count.Pos, diag.OutOfRange, "the count is %d, of a set of %d attestors", s.Count, len(s.Entries))
	}
	return s
}

// mayBeSplit tells that an entry may have several keys, each of which counts.
func (s *AttestorSet) mayBeSplit() bool {
	for _, e := range s.Entries {
		if e.Keys != nil && e.Keys.Secret == "" {
			return true
		}
	}
	return false
}

func (r imageReader) attestor(n *Node) *Attestor {
	o := r.object(n, "an attestor")
	a := &Attestor{Pos: n.Pos}
	algorithm := ""
	if k := o.take("keys"); k != nil {
		a.Keys = r.staticKeys(k)
	}
	if c := o.take("certificates"); c != nil {
		a.Certificates = r.certificates(c)
	}
	if k := o.take("keyless"); k != nil {
		a.Keyless = r.keyless(k)
	}
	if s := o.take("attestor"); s != nil {
		a.Set = r.attestorSet(s)
	}
	a.Annotations, a.Repository = o.pairs("annotations"), o.str("repository")
	algorithm = o.choice("signatureAlgorithm", signatureAlgorithms()...)
	if a.Keys != nil && a.Keys.Algorithm == "" {
		a.Keys.Algorithm = algorithm
	}
	o.end()
	o.one("keys", "certificates", "keyless", "attestor")
	return a
}

func signatureAlgorithms() []string { return []string{"sha224", "sha256", "sha384", "sha512"} }

func (r imageReader) keyless(n *Node) *Keyless {
	o := r.object(n, "keyless")
	k := &Keyless{
		Pos: n.Pos, Issuer: o.text("issuer"), IssuerRegExp: o.text("issuerRegExp"), Subject: o.text("subject"), SubjectRegExp: o.text("subjectRegExp"),
		Roots: o.text("roots"), Extensions: o.pairs("additionalExtensions"),
	}
	k.IgnoreSCT = r.logs(o, &k.Log)
	o.end()
	r.chain(k.Roots, "roots")
	if k.Issuer.Value+k.IssuerRegExp.Value+k.Subject.Value+k.SubjectRegExp.Value == "" {
		r.lacks(n.Pos, "signatures by anybody (name an issuer and a subject)")
	}
	return k
}

func (r imageReader) certificates(n *Node) *Certificates {
	o := r.object(n, "certificates")
	c := &Certificates{Pos: n.Pos, Certificate: o.text("cert"), Chain: o.text("certChain")}
	c.IgnoreSCT = r.logs(o, &c.Log)
	o.end()
	r.chain(c.Certificate, "cert")
	r.chain(c.Chain, "certChain")
	if c.Certificate.Value == "" && c.Chain.Value == "" && !o.wrong {
		r.fail(n.Pos, diag.Missing, "certificates need cert or certChain; without one anybody could sign")
	}
	return c
}

func (r imageReader) staticKeys(n *Node) *StaticKeys {
	o := r.object(n, "keys")
	k := &StaticKeys{Pos: n.Pos, Public: o.text("publicKeys"), Algorithm: o.choice("signatureAlgorithm", signatureAlgorithms()...)}
	if s := o.take("secret"); s != nil {
		b := r.object(s, "secret")
		k.Secret, k.SecretNamespace = b.needText("name").Value, b.needText("namespace").Value
		b.end()
	}
	kms := o.text("kms")
	r.logs(o, &k.Log)
	o.end()
	switch {
	case k.Public.Value != "":
		r.publicKey(k.Public)
		if at, ok := strings.CutPrefix(k.Public.Value, "k8s://"); ok {
			k.SecretNamespace, k.Secret, _ = strings.Cut(at, "/")
			k.Public = Text{}
		} else {
			k.SecretNamespace, k.Secret = "", ""
		}
	case k.Secret != "":
	case kms.Value != "":
		r.lacks(kms.Pos, "keys of a key management service")
	case !o.wrong:
		r.fail(n.Pos, diag.Missing, "keys need publicKeys or a secret")
	}
	return k
}

// publicKey looks at what is to be a public key. A file, a URL or a variable of the environment
// means what is there to whoever reads it, which is not for a policy to say.
func (r imageReader) publicKey(t Text) {
	if !strings.Contains(t.Value, "-----BEGIN") && !strings.Contains(t.Value, "{{") && !strings.HasPrefix(t.Value, "k8s://") {
		r.lacks(t.Pos, "keys of a key management service, a file or a URL; put the public key here, or into a Secret")
	}
}

// logs reads the settings of the logs of signatures and certificates; ct tells that no proof
// of the latter is asked for.
func (r imageReader) logs(o *object, log *SignatureLog) (ct bool) {
	if log == nil {
		log = &SignatureLog{}
	}
	if n := o.take("rekor"); n != nil {
		b := r.object(n, "rekor")
		b.str("url")
		log.Key, log.Ignored = b.text("pubkey"), b.boolean("ignoreTlog", false)
		b.end()
	}
	if n := o.take("ctlog"); n != nil {
		b := r.object(n, "ctlog")
		log.Stamps, log.Certificates = b.text("tsaCertChain"), b.text("pubkey")
		ct = b.boolean("ignoreSCT", false)
		b.end()
		r.stampers(log.Stamps, "tsaCertChain")
	}
	return ct
}
