package interp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/policy"
)

// PinImages puts the digest that a registry names now in the place of each tag of the images
// that rules verify, as far as they want it: ghcr.io/acme/web:v1 becomes
// ghcr.io/acme/web:v1@sha256:…. Nothing is verified, and nothing written down: Judge verifies
// the digests that are there then. It is for the object that all else has changed already.
func (in *Interpreter) PinImages(ctx context.Context, req *Request) *Mutation {
	a := newReview(ctx, req, in.world, in.limits)
	out := &Mutation{Before: a.object}
	for _, p := range in.policies {
		if p.ImagePolicy() != nil {
			out.Rules = append(out.Rules, in.pinByForms(a, p)...)
			continue
		}
		if p.InCEL() || !slices.ContainsFunc(p.Rules, (*policy.Rule).PinsImages) {
			continue
		}
		open, err := p.gate(a)
		if err == nil && !open {
			continue
		}
		for _, r := range p.rulesFor(in, a.kind.kind) {
			if !r.PinsImages() || r.Invalid {
				continue
			}
			m := RuleMutation{Before: a.object, After: a.object}
			m.Policy, m.Rule = p.Name, r.Name
			if p.Namespaced() {
				m.Namespace = p.Namespace
			}
			verdict := say(Error, "%v", err)
			if err == nil {
				verdict, m.After = r.pin(a)
			}
			m.Status, m.Kyverno, m.Message, m.Exceptions, m.Code = verdict.status, verdict.kyverno, verdict.message, verdict.exceptions, verdict.code
			if verdict.status == Pass {
				a.setObject(m.After)
			}
			out.Rules = append(out.Rules, m)
		}
	}
	out.After = a.object
	return out
}

// pin is the object with digests.
func (r *rule) pin(a *review) (out verdict, after map[string]any) {
	after = a.object
	defer func() {
		if p := recover(); p != nil {
			out, after = say(Error, "%v: %v", errPanic, p), a.object
		}
	}()
	if !a.looksAtImages() || a.world.Registry() == nil {
		return none(), after
	}
	if _, more := r.VerifiesMore(); more {
		return none(), after
	}
	if a.goes() {
		return none(), after
	}
	begun, v := r.begin(a)
	if begun.status != Pass {
		return begun, after
	}
	found, err := v.findImages(r.Rule, a.object)
	if err != nil || len(found) > maxImages {
		return none(), after // Judge says so
	}
	checks, err := r.imageChecks(a, v, slices.DeleteFunc(found, func(f foundImage) bool { return f.err != nil || f.digest != "" }))
	if err != nil {
		return say(Error, "%v", err), after
	}
	unchanged := sameImages(v, r.Rule, a)
	pinned := map[string]string{}
	for _, c := range checks {
		at := strings.Join(c.found.path, "\x00")
		if !c.entry.MutateDigest || c.skipped || pinned[at] != "" || getAt(after, c.found.path) != c.found.text {
			continue
		}
		image, err := a.world.Registry().Pinned(a.ctx, c.found.image.pullReference(), c.with)
		switch {
		case err != nil && unchanged && errors.Is(err, ErrUnreachable):
			continue
		case err != nil:
			return say(Error, "failed to update digest: %v", err), a.object
		}
		_, digest, _ := strings.Cut(image, "@")
		pinned[at] = c.found.reference() + "@" + digest
		after = putAt(after, c.found.path, pinned[at]).(map[string]any)
	}
	if len(pinned) == 0 {
		return say(Skip, "every image has a digest"), after
	}
	return say(Pass, "mutated image digest"), after
}

// getAt is the text at a path.
func getAt(at any, path []string) string {
	for _, key := range path {
		switch container := at.(type) {
		case map[string]any:
			at = container[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(container) {
				return ""
			}
			at = container[i]
		}
	}
	text, _ := at.(string)
	return text
}

// putAt is a copy with a text at a path that is there.
func putAt(at any, path []string, text string) any {
	if len(path) == 0 {
		return text
	}
	switch at := at.(type) {
	case map[string]any:
		out := maps.Clone(at)
		out[path[0]] = putAt(at[path[0]], path[1:], text)
		return out
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(at) {
			return at
		}
		out := slices.Clone(at)
		out[i] = putAt(at[i], path[1:], text)
		return out
	}
	return at
}
