package interp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kvap/kvap/policy"
)

// PinImages puts the digest that a registry names now in the place of each tag of the images
// that rules verify, as far as they want it: ghcr.io/acme/web:v1 becomes
// ghcr.io/acme/web:v1@sha256:…. Nothing is verified, and nothing written down: Judge verifies
// the digests that are there then. It is for the object that all else has changed already.
func (in *Interpreter) PinImages(ctx context.Context, req *Request) *MutationResult {
	a := newReview(ctx, req, in.world, in.limits)
	out := &MutationResult{Before: a.object}
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
func (r *rule) pin(a *preparedRequest) (out verdict, after map[string]any) {
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
	wanted := slices.DeleteFunc(checks, func(c *imageCheck) bool {
		return !c.entry.MutateDigest || c.skipped || getAt(after, c.found.path) != c.found.text
	})
	digests := make([]string, len(wanted))
	eachImage(len(wanted), func(i int) {
		c := wanted[i]
		image, err := a.world.Registry().Pinned(a.ctx, c.found.image.pullReference(), c.with)
		digests[i], c.err = digestOf(image), err
	}, func(i int, err error) { wanted[i].err = err })
	pinned := map[string]bool{}
	for i, c := range wanted {
		at := strings.Join(c.found.path, "\x00")
		switch {
		case pinned[at]:
		case c.err != nil && unchanged && errors.Is(c.err, ErrUnreachable):
		case c.err != nil:
			return say(Error, "failed to update digest: %v", c.err), a.object
		default:
			pinned[at] = true
			after = putAt(after, c.found.path, c.found.reference()+"@"+digests[i]).(map[string]any)
		}
	}
	if len(pinned) == 0 {
		return say(Skip, "every image has a digest"), after
	}
	return say(Pass, "mutated image digest"), after
}

// eachImage does something for each of some images, a few at once. What panics is an error of that
// one.
func eachImage(count int, do func(i int), failed func(i int, err error)) {
	turns := make(chan struct{}, imagesTogether)
	var all sync.WaitGroup
	for i := range count {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			defer func() {
				if p := recover(); p != nil {
					failed(i, fmt.Errorf("%w: %v", errPanic, p))
				}
			}()
			do(i)
		})
	}
	all.Wait()
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
