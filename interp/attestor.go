package interp

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/policy"
)

// An attestorSet is a set of attestors, read once.
type attestorSet struct {
	*policy.AttestorSet
	entries []*attestor
}

type attestor struct {
	*policy.Attestor
	key, certificate, chain *text
	keyless                 []*text // issuer, issuerRegExp, subject, subjectRegExp, roots
	logs                    []*text // keys of logs of signatures and certificates, and who stamps
	set                     *attestorSet
}

func readAttestorSets(sets []*policy.AttestorSet) []*attestorSet {
	var out []*attestorSet
	for _, s := range sets {
		out = append(out, readAttestorSet(s))
	}
	return out
}

func readAttestorSet(s *policy.AttestorSet) *attestorSet {
	out := &attestorSet{AttestorSet: s}
	for _, e := range s.Entries {
		a := &attestor{Attestor: e}
		switch {
		case e.Keys != nil:
			a.key = readText(e.Keys.Public.Value, e.Keys.Public.Pos)
		case e.Certificates != nil:
			c := e.Certificates
			a.certificate, a.chain = readText(c.Certificate.Value, c.Certificate.Pos), readText(c.Chain.Value, c.Chain.Pos)
		case e.Keyless != nil:
			k := e.Keyless
			for _, t := range []policy.Text{k.Issuer, k.IssuerRegExp, k.Subject, k.SubjectRegExp, k.Roots} {
				a.keyless = append(a.keyless, readText(t.Value, t.Pos))
			}
		case e.Set != nil:
			a.set = readAttestorSet(e.Set)
		}
		if log := logOf(e); log != nil {
			for _, t := range []policy.Text{log.Key, log.Stamps, log.Certificates} {
				a.logs = append(a.logs, readText(t.Value, t.Pos))
			}
		}
		out.entries = append(out.entries, a)
	}
	return out
}

// logOf is what an attestor says of logs; nil for a set of attestors.
func logOf(e *policy.Attestor) *policy.SignatureLog {
	switch {
	case e.Keys != nil:
		return &e.Keys.Log
	case e.Certificates != nil:
		return &e.Certificates.Log
	case e.Keyless != nil:
		return &e.Keyless.Log
	}
	return nil
}

// A signerSet is a set of attestors with what variables and Secrets say. It holds where so
// many of its signers do; all if that is 0.
type signerSet struct {
	at      string
	count   int
	signers []signer
}

// A signer is an Attestor, or a set of them.
type signer struct {
	at  string
	by  Attestor
	set *signerSet
}

// signersOf are the sets of an entry, or of one of its attestations.
func (e *imageEntry) signersOf(v *vars, a *preparedRequest, sets []*attestorSet, at string) ([]signerSet, error) {
	var out []signerSet
	for i, s := range sets {
		one, err := e.signerSet(v, a, s, fmt.Sprintf("%s.attestors[%d]", at, i))
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func (e *imageEntry) signerSet(v *vars, a *preparedRequest, s *attestorSet, at string) (signerSet, error) {
	out := signerSet{at: at, count: s.Count}
	for i, one := range s.entries {
		signers, err := e.signers(v, a, one, fmt.Sprintf("%s.entries[%d]", at, i))
		if err != nil {
			return out, err
		}
		out.signers = append(out.signers, signers...)
	}
	return out, nil
}

// signers are those of one entry of a set: each of several keys is a signer of its own.
func (e *imageEntry) signers(v *vars, a *preparedRequest, one *attestor, at string) ([]signer, error) {
	by := Attestor{Repository: e.Repository, Annotations: pairsOf(e.Annotations)}
	switch e.Type {
	case "SigstoreBundle":
		by.Format = Bundles
	case "Notary":
		by.Format = Notation
	}
	if one.Repository != "" {
		by.Repository = one.Repository
	}
	if one.Annotations != nil {
		by.Annotations = pairsOf(one.Annotations)
	}
	if log := logOf(one.Attestor); log != nil {
		by.IgnoreLog = log.Ignored
		for i, into := range []*string{&by.LogKey, &by.Stamps, &by.CertificateLog} {
			var err error
			if *into, err = v.fillString(one.logs[i]); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case one.set != nil:
		set, err := e.signerSet(v, a, one.set, at+".attestor")
		return []signer{{at: at + ".attestor", set: &set}}, err
	case one.Certificates != nil:
		var err error
		if by.Certificate, err = v.fillString(one.certificate); err != nil {
			return nil, err
		}
		if by.Chain, err = v.fillString(one.chain); err != nil {
			return nil, err
		}
		by.LoggedCertificates = !one.Certificates.IgnoreSCT
		return []signer{{at: at + ".certificates", by: by}}, nil
	case one.Keyless != nil:
		k := &Keyless{IgnoreSCT: one.Keyless.IgnoreSCT, Extensions: pairsOf(one.Keyless.Extensions)}
		for i, into := range []*string{&k.Issuer, &k.IssuerRegExp, &k.Subject, &k.SubjectRegExp, &k.Roots} {
			var err error
			if *into, err = v.fillString(one.keyless[i]); err != nil {
				return nil, err
			}
		}
		by.Keyless = k
		return []signer{{at: at + ".keyless", by: by}}, nil
	case one.Keys == nil:
		return nil, fmt.Errorf("%s: it names nobody", at)
	}
	by.Algorithm = one.Keys.Algorithm
	keys, err := e.keys(v, a, one)
	if err != nil {
		return nil, fmt.Errorf("%s.keys: %w", at, err)
	}
	var out []signer
	for _, key := range keys {
		by.Key = key
		out = append(out, signer{at: at + ".keys", by: by})
	}
	return out, nil
}

// keys are the public keys of an attestor. Several in a text are each a key; a Secret has one.
func (e *imageEntry) keys(v *vars, a *preparedRequest, one *attestor) ([]string, error) {
	if one.Keys.Secret != "" {
		if e.namespace != "" && e.namespace != one.Keys.SecretNamespace {
			return nil, fmt.Errorf("a policy of the namespace %s reaches no Secret of the namespace %s", e.namespace, one.Keys.SecretNamespace)
		}
		key, err := secretKey(v, a, one.Keys.SecretNamespace, one.Keys.Secret)
		return []string{key}, err
	}
	text, err := v.fillString(one.key)
	if err != nil {
		return nil, err
	}
	const most = 10
	var keys []string
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if keys = append(keys, string(pem.EncodeToMemory(block))); len(keys) > most {
			return nil, fmt.Errorf("there are more than %d public keys", most)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("publicKeys has no PEM block")
	}
	return keys, nil
}

// secretKey is cosign.pub of a Secret.
func secretKey(v *vars, a *preparedRequest, namespace, name string) (string, error) {
	answer, err := a.world.API(v.ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/secrets/"+url.PathEscape(name), nil)
	if err != nil {
		return "", err
	}
	var secret map[string]any
	if err := kjson.Unmarshal(answer, &secret); err != nil {
		return "", fmt.Errorf("the Secret %s/%s: %w", namespace, name, err)
	}
	data, err := base64.StdEncoding.DecodeString(digText(secret, "data", "cosign.pub"))
	if err != nil || len(data) == 0 {
		return "", fmt.Errorf("the Secret %s/%s has no cosign.pub", namespace, name)
	}
	return string(data), nil
}

func pairsOf(pairs []policy.Pair) map[string]string {
	if len(pairs) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, p := range pairs {
		out[p.Key] = p.Value
	}
	return out
}

// An unproven is why sets of attestors do not hold, where a registry that could not be asked may
// say otherwise if it is unknown.
type unproven struct {
	why     []string
	unknown bool
}

// Error implements error.
func (u unproven) Error() string { return strings.Join(u.why, "; ") }

// Is tells that nothing is decided.
func (u unproven) Is(target error) bool { return u.unknown && target == ErrUnreachable }

// hold is nil where all sets do. One that does not decides, whatever is unknown of others.
func hold(sets []signerSet, prove func(Attestor) error) error {
	all := unproven{unknown: true}
	for _, s := range sets {
		if err := s.holds(prove); err != nil {
			all.why = append(all.why, err.Error())
			all.unknown = all.unknown && errors.Is(err, ErrUnreachable)
		}
	}
	if len(all.why) == 0 {
		return nil
	}
	return all
}

// holds is nil where as many signers did as the set needs. They are asked in order, until that
// is decided. Where those that could not be asked would be enough, nothing is.
func (s signerSet) holds(prove func(Attestor) error) error {
	needed := s.count
	if needed == 0 {
		needed = len(s.signers)
	}
	proven, unknown := 0, 0
	var why []string
	for _, one := range s.signers {
		err := error(nil)
		if one.set != nil {
			err = one.set.holds(prove)
		} else if err = prove(one.by); err != nil {
			err = fmt.Errorf("%s: %w", one.at, err)
		}
		switch {
		case err == nil:
			if proven++; proven >= needed {
				return nil
			}
			continue
		case errors.Is(err, ErrUnreachable):
			unknown++
		}
		why = append(why, err.Error())
	}
	if needed > len(s.signers) {
		why = append(why, fmt.Sprintf("%s: %d of %d attestors are needed", s.at, needed, len(s.signers)))
	}
	return unproven{why, proven+unknown >= needed}
}
