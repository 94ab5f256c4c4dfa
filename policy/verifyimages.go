package policy

func (r *reader) imageVerification(n *Node) {
	o := r.object(n, "an entry of verifyImages")
	o.choice("type", "Cosign", "SigstoreBundle", "Notary")
	r.action(o.take("failureAction"), "")
	for _, key := range []string{"imageReferences", "skipImageReferences"} {
		o.strings(key)
	}
	for _, item := range o.list("attestors") {
		r.attestorSet(item)
	}
	for _, item := range o.list("attestations") {
		r.attestation(item)
	}
	for _, key := range []string{"mutateDigest", "verifyDigest", "required", "useCache", "cosignOCI11"} {
		o.optionalBool(key)
	}
	if c := o.take("imageRegistryCredentials"); c != nil {
		r.registryCredentials(c)
	}
	if v := o.take("validate"); v != nil {
		b := r.object(v, "validate")
		b.str("message")
		r.deny(b.take("deny"))
		b.end()
	}
	// The forms before attestors.
	for _, key := range []string{"image", "key", "issuer", "subject", "roots", "repository"} {
		o.str(key)
	}
	o.pairs("annotations")
	o.pairs("additionalExtensions")
	o.end()
}

func (r *reader) attestation(n *Node) {
	o := r.object(n, "an attestation")
	for _, key := range []string{"name", "type", "predicateType"} {
		o.str(key)
	}
	for _, item := range o.list("attestors") {
		r.attestorSet(item)
	}
	for _, item := range o.list("conditions") {
		r.conditions(item)
	}
	o.end()
}

func (r *reader) attestorSet(n *Node) {
	o := r.object(n, "a set of attestors")
	o.whole("count", 0, 1<<31)
	for _, item := range o.list("entries") {
		r.attestor(item)
	}
	o.end()
}

func (r *reader) attestor(n *Node) {
	o := r.object(n, "an attestor")
	if k := o.take("keys"); k != nil {
		r.staticKeys(k)
	}
	if c := o.take("certificates"); c != nil {
		b := r.object(c, "certificates")
		b.str("cert")
		b.str("certChain")
		r.transparency(b)
		b.end()
	}
	if k := o.take("keyless"); k != nil {
		b := r.object(k, "keyless")
		for _, key := range []string{"issuer", "issuerRegExp", "subject", "subjectRegExp", "roots"} {
			b.str(key)
		}
		b.pairs("additionalExtensions")
		r.transparency(b)
		b.end()
	}
	if a := o.take("attestor"); a != nil {
		r.attestorSet(a)
	}
	o.pairs("annotations")
	o.str("repository")
	o.str("signatureAlgorithm")
	o.end()
}

func (r *reader) staticKeys(n *Node) {
	o := r.object(n, "keys")
	for _, key := range []string{"publicKeys", "signatureAlgorithm", "kms"} {
		o.str(key)
	}
	if s := o.take("secret"); s != nil {
		b := r.object(s, "secret")
		b.needText("name")
		b.needText("namespace")
		b.end()
	}
	r.transparency(o)
	o.end()
}

// transparency reads the settings of the signature and certificate logs.
func (r *reader) transparency(o *object) {
	if n := o.take("rekor"); n != nil {
		b := r.object(n, "rekor")
		b.str("url")
		b.str("pubkey")
		b.optionalBool("ignoreTlog")
		b.end()
	}
	if n := o.take("ctlog"); n != nil {
		b := r.object(n, "ctlog")
		b.str("pubkey")
		b.str("tsaCertChain")
		b.optionalBool("ignoreSCT")
		b.end()
	}
}
