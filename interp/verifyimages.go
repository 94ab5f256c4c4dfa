package interp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/policy"
)

// A rule with verifyImages judges the object that is to be stored, whatever was said of it
// before: nothing that is written in it counts, as kyverno.io/verify-images-scoped, which
// anybody can write. Each image is judged by its digest.
//
//	verifyImages:
//	- imageReferences: ["ghcr.io/acme/*"]            which images: selects
//	  attestors: [{entries: [{keys: {…}}]}]          who must have signed: hold
//	  attestations: [{type: …, conditions: […]}]     what must be attested: attest

// An imageEntry is an entry of verifyImages, read once.
type imageEntry struct {
	*policy.ImageVerification
	namespace    string // of a namespaced policy, which reaches no Secret of another
	skip         []*text
	credentials  *template
	attestors    []*attestorSet
	attestations []*attestation
	deny         *conditions
}

type attestation struct {
	*policy.Attestation
	attestors  []*attestorSet
	conditions []*conditions
}

func readImageEntries(p *policy.Policy, r *policy.Rule) []*imageEntry {
	var out []*imageEntry
	for _, v := range r.VerifyImages {
		e := &imageEntry{ImageVerification: v, namespace: p.Namespace, credentials: readDocument(v.Credentials), attestors: readAttestorSets(v.Attestors)}
		for _, s := range v.Skip {
			e.skip = append(e.skip, readText(s.Value, s.Pos))
		}
		for _, one := range v.Attestations {
			a := &attestation{Attestation: one, attestors: readAttestorSets(one.Attestors)}
			if len(one.Attestors) == 0 { // those of the entry, not anybody
				a.attestors = e.attestors
			}
			for _, c := range one.Conditions {
				a.conditions = append(a.conditions, readConditions(c, excusing))
			}
			e.attestations = append(e.attestations, a)
		}
		if v.Validate != nil && v.Validate.Deny != nil {
			e.deny = readConditions(v.Validate.Deny.Conditions, denying)
		}
		out = append(out, e)
	}
	return out
}

// How many images an object may have, and how many are looked at at once.
const (
	maxImages      = 100
	imagesTogether = 8
)

// looksAtImages tells whether a request is one that brings images. Nothing runs by what is
// deleted, connected to or scaled.
func (a *preparedRequest) looksAtImages() bool {
	return a.object != nil && !a.deletes() && a.operation != "CONNECT" &&
		(a.kind.subresource == "" || a.kind.subresource == "ephemeralcontainers")
}

// goes tells of an object that is being deleted, and waits for its finalizers.
func (a *preparedRequest) goes() bool {
	return a.operation == "UPDATE" && a.old != nil && metaText(a.old, "deletionTimestamp") != ""
}

// verifyImages says what a rule finds of the images of an object: the worst that any entry
// finds of any image.
func (r *rule) verifyImages(a *preparedRequest, v *vars) verdict {
	if what, more := r.VerifiesMore(); more {
		return unsupported(what.Value + " are not verified")
	}
	if a.goes() && sameImages(v, r.Rule, a) {
		return none()
	}
	found, err := v.findImages(r.Rule, a.object)
	if err != nil {
		return say(Error, "%v", err)
	}
	if len(found) > maxImages && slices.ContainsFunc(r.images, (*imageEntry).proves) {
		return say(Fail, "the object has %d images, and %d at most are verified", len(found), maxImages)
	}
	checks, err := r.imageChecks(a, v, found)
	switch {
	case err != nil:
		return say(Error, "%v", err)
	case len(checks) == 0:
		return none()
	case a.world.Registry() == nil && slices.ContainsFunc(checks, func(c *imageCheck) bool { return !c.skipped && c.entry.proves() }):
		return unsupported("no registry is at hand to verify images")
	}
	proveAll(checks)
	var results []verdict
	unchanged := sameImages(v, r.Rule, a)
	for _, c := range checks {
		out := c.verdict(v)
		if out.status == Error && unchanged && errors.Is(c.err, ErrUnreachable) {
			out = say(Skip, "the images are those that the object had, and %v", c.err)
			out.warnings = []string{out.message}
		}
		results = append(results, out)
	}
	return worst(results)
}

// proves tells of an entry that asks a registry.
func (e *imageEntry) proves() bool { return len(e.attestors) > 0 || len(e.attestations) > 0 }

// sameImages tells whether an object has the images that it had before, in the same order.
func sameImages(v *vars, r *policy.Rule, a *preparedRequest) bool {
	if a.operation != "UPDATE" || a.old == nil {
		return false
	}
	before, err := v.findImages(r, a.old)
	if err != nil {
		return false
	}
	now, err := v.findImages(r, a.object)
	texts := func(list []foundImage) []string {
		var out []string
		for _, f := range list {
			out = append(out, f.text)
		}
		return out
	}
	return err == nil && slices.Equal(texts(before), texts(now))
}

// worst is what is said of several: a failure before an error, and that before what is well.
func worst(results []verdict) verdict {
	for _, status := range []Status{Fail, Error, Pass, Skip} {
		var messages []string
		for _, one := range results {
			if one.status == status && !slices.Contains(messages, one.message) {
				messages = append(messages, one.message)
			}
		}
		if len(messages) > 0 {
			out := say(status, "%s", strings.Join(messages, "; "))
			for _, one := range results {
				out.warnings = append(out.warnings, one.warnings...)
			}
			return out
		}
	}
	return none()
}

// An imageCheck is what an entry asks of an image.
type imageCheck struct {
	a            *preparedRequest
	entry        *imageEntry
	found        foundImage
	skipped      bool
	with         Access
	sets         []signerSet
	attestations []attestationCheck

	err        error   // why it is not proven
	predicates [][]any // of each attestation
}

type attestationCheck struct {
	*attestation
	sets []signerSet
}

// imageChecks are those of all entries, with variables filled in: what asks registries does so
// in several goroutines.
func (r *rule) imageChecks(a *preparedRequest, v *vars, found []foundImage) ([]*imageCheck, error) {
	var out []*imageCheck
	for _, e := range r.images {
		var template *imageCheck
		for _, f := range found {
			if f.err == nil && !f.image.selectedBy(e.References) {
				continue
			}
			if template == nil {
				var err error
				if template, err = e.check(a, v); err != nil {
					return nil, err
				}
			}
			one := *template
			one.found = f
			if f.err == nil {
				var err error
				if one.skipped, err = e.skips(v, f.image); err != nil {
					return nil, err
				}
			}
			out = append(out, &one)
		}
	}
	return out, nil
}

// check is what an entry asks of any image.
func (e *imageEntry) check(a *preparedRequest, v *vars) (*imageCheck, error) {
	out := &imageCheck{a: a, entry: e, with: a.asPod(Access{Fresh: !e.UseCache, Namespace: e.namespace})}
	credentials, err := v.fill(e.credentials)
	if err != nil {
		return nil, err
	}
	out.with.Credentials = credentials.Data
	if out.sets, err = e.signersOf(v, a, e.attestors, ""); err != nil {
		return nil, err
	}
	for i, one := range e.attestations {
		sets, err := e.signersOf(v, a, one.attestors, fmt.Sprintf(".attestations[%d]", i))
		if err != nil {
			return nil, err
		}
		out.attestations = append(out.attestations, attestationCheck{one, sets})
	}
	return out, nil
}

// proveAll asks registries, about a few images at once.
func proveAll(checks []*imageCheck) {
	asked := slices.DeleteFunc(slices.Clone(checks), func(c *imageCheck) bool { return c.skipped || c.found.err != nil })
	eachImage(len(asked), func(i int) { asked[i].prove() }, func(i int, err error) { asked[i].err = err })
}

// prove resolves the image once: all that is proven is of one digest.
func (c *imageCheck) prove() {
	if !c.entry.proves() {
		return
	}
	registry, ctx := c.a.world.Registry(), c.a.ctx
	image, err := registry.Pinned(ctx, c.found.image.pullReference(), c.with)
	if err != nil {
		c.err = err
		return
	}
	if c.err = hold(c.sets, func(by Attestor) error { return registry.Signed(ctx, image, by, c.with) }); c.err != nil {
		return
	}
	for _, one := range c.attestations {
		if one.Type == "" {
			c.err = errors.New("an attestation of the policy has no type")
			return
		}
		var predicates []any
		err := hold(one.sets, func(by Attestor) error {
			found, err := registry.Attested(ctx, image, one.Type, by, c.with)
			for _, statement := range found { // of each: they may be in several repositories
				predicates = append(predicates, statement["predicate"])
			}
			return err
		})
		if err != nil {
			c.err = fmt.Errorf("the attestations: %w", err)
			return
		}
		c.predicates = append(c.predicates, predicates)
	}
}

// verdict is what the check comes to, with what the user should know of an image that is admitted.
func (c *imageCheck) verdict(v *vars) verdict {
	out := c.judged(v)
	switch {
	case out.status == Skip && c.skipped:
		out.warnings = []string{out.message}
	case out.status == Pass && c.entry.proves() && c.found.image.digest == "":
		out.warnings = []string{fmt.Sprintf("image %s has no digest: what was verified is what its tag means now, and a node may pull another", c.found.text)}
	}
	return out
}

// judged is what the check comes to, with the conditions of attestations and of validate.
func (c *imageCheck) judged(v *vars) verdict {
	image, e := c.found.text, c.entry
	switch {
	case c.found.err != nil:
		return say(Fail, "failed to verify image %s: %v", image, c.found.err)
	case c.skipped:
		return say(Skip, "skipping image reference image %s", image)
	case e.VerifyDigest && c.found.image.digest == "":
		return say(Fail, "missing digest for %s", image)
	case c.err != nil && errors.Is(c.err, ErrUnreachable):
		return say(Error, "failed to verify image %s: %v", image, c.err)
	case c.err != nil:
		return say(Fail, "failed to verify image %s: %v", image, c.err)
	case !e.proves() && e.Required:
		return say(Fail, "unverified image %s: the policy names nobody who must have signed it", image)
	case !e.proves():
		return say(Pass, "image %s has a digest", image)
	case len(c.attestations) == 0:
		return say(Pass, "verified image signatures for %s", image)
	}
	return c.attest(v)
}

// attest judges what is attested. A statement says nothing of the names that are the request's.
func (c *imageCheck) attest(v *vars) verdict {
	image := c.found.text
	named := map[string]any{}
	for i, one := range c.attestations {
		for _, predicate := range c.predicates[i] {
			m, ok := predicate.(map[string]any)
			if !ok && len(one.conditions) > 0 {
				return say(Fail, "image attestations verification failed for %s: the predicate of an attestation of the type %s is no map", image, one.Type)
			}
			message, ok, err := holdOf(v, one.conditions, m)
			switch {
			case err != nil:
				return say(Fail, "image attestations verification failed for %s: %v", image, err)
			case !ok:
				return say(Fail, "%s", joinMessages(fmt.Sprintf("image attestations verification failed for %s: the conditions of the type %s do not hold", image, one.Type), message))
			}
		}
		if one.Name != "" && len(c.predicates[i]) > 0 {
			named[one.Name] = c.predicates[i][0]
		}
	}
	if c.entry.deny == nil {
		return say(Pass, "verified image attestations for %s", image)
	}
	v.pushAttested(named)
	defer v.pop()
	denied, message, err := c.entry.deny.holds(v)
	switch {
	case err != nil:
		return say(Error, "validation in verifyImages: %v", err)
	case denied:
		return say(Fail, "validation in verifyImages failed: %s", joinMessages(c.entry.Validate.Message, message))
	}
	return say(Pass, "verified image attestations for %s", image)
}

// holdOf tells whether conditions hold of a predicate, whose keys they name.
func holdOf(v *vars, all []*conditions, predicate map[string]any) (message string, ok bool, err error) {
	v.pushAttested(predicate, v.loaders...)
	defer v.pop()
	for _, c := range all {
		ok, message, err := c.holds(v)
		if err != nil || !ok {
			return message, false, err
		}
	}
	return "", true, nil
}

// pushAttested opens a level with what is attested. It is text of somebody else, as that of a
// request is, and says nothing of the names that are the request's, nor of those kept: what
// the policy asks for is not for who attests to say.
func (v *vars) pushAttested(names map[string]any, kept ...*loader) {
	l := v.push(nil)
	for name, value := range names {
		switch {
		case slices.ContainsFunc(kept, func(l *loader) bool { return l.name == name }):
		case name == "request", name == "images", name == "image", strings.HasPrefix(name, "serviceAccount"), strings.HasPrefix(name, "element"):
		default:
			l.values[name] = expr.Value{Data: value, From: expr.Provenance{Origin: expr.OfRequest}}
		}
	}
}
