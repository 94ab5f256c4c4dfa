package interp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/kvap/kvap/policy"
)

// pinByForms puts digests in place of tags as an ImageValidatingPolicy wants it: in containers of
// pods and their controllers, whatever its own lists of images are.
func (in *Interpreter) pinByForms(a *preparedRequest, p *compiledPolicy) []RuleMutation {
	if !p.PinsImages() {
		return nil
	}
	open, _ := p.gate(a)
	out := make([]RuleMutation, len(p.forms))
	for i, f := range p.forms {
		m := RuleMutation{Before: a.object, After: a.object}
		m.Policy, m.Rule, m.Status, m.Kyverno = p.Name, f.name, None, None
		if p.Namespaced() {
			m.Namespace = p.Namespace
		}
		if open {
			verdict, after := f.pin(in, a)
			m.Status, m.Kyverno, m.Message, m.Exceptions, m.Code = verdict.status, verdict.kyverno, verdict.message, verdict.exceptions, verdict.code
			m.After = after
			a.setObject(after)
		}
		out[i] = m
	}
	return out
}

// pin is the object with digests. An image of which there is none now is an error; the others get
// theirs. Nothing is verified here: what cannot be said is for judge to say.
func (f *validatingForm) pin(in *Interpreter, a *preparedRequest) (out verdict, after map[string]any) {
	after = a.object
	defer func() {
		if p := recover(); p != nil {
			out, after = say(Error, "%v: %v", errPanic, p), a.object
		}
	}()
	_, more := f.policy.VerifiesMore()
	if more || !a.looksAtImages() || a.world.Registry() == nil || a.goes() {
		return none(), after
	}
	matches, err := f.matches(a)
	if err != nil || !matches || a.sparesByConstraints(f.constraints) {
		return none(), after
	}
	f.once.Do(func() { f.compile(in) })
	if f.err != nil {
		return none(), after
	}
	scope, err := a.celScope()
	if err != nil {
		return say(Error, "%v", err), after
	}
	delete(scope, "exceptions")
	if applies, err := scope.all(a.ctx, f.conditions); err != nil || !applies {
		return none(), after
	}
	excepted, err := a.celExceptedWhole(f.exceptions, scope, f.policy.FailurePolicy == policy.Ignore)
	if err != nil || excepted != nil {
		return none(), after
	}
	return newImageSession(a, f, scope).pinAll(after)
}

// pinAll puts digests in place of the tags of images that are matched.
func (s *imageSession) pinAll(object map[string]any) (verdict, map[string]any) {
	places := podImages(s.a.kind, object)
	if len(places) > maxImages {
		return none(), object
	}
	var err error
	type tagged struct {
		podImage
		image

		pinned string
		err    error
	}
	var all []*tagged
	for _, at := range places {
		one, err := s.read(at.text)
		if err != nil || one.digest != "" {
			continue
		}
		matches, err := s.form.images.selects(s.a.ctx, at.text, one)
		if err != nil || !matches {
			continue
		}
		all = append(all, &tagged{podImage: at, image: one})
	}
	eachImage(len(all), func(i int) { all[i].pinned, all[i].err = s.pin(s.a.ctx, all[i].text, all[i].image) }, func(i int, err error) { all[i].err = err })
	unchanged, changed := s.a.keepsImages(), false
	for _, t := range all {
		switch {
		case t.err != nil && unchanged && errors.Is(t.err, ErrUnreachable):
		case t.err != nil:
			err = errors.Join(err, fmt.Errorf("failed to update digest: %w", t.err))
		default:
			object, changed = putAt(object, t.podImage.path, t.image.reference()+"@"+digestOf(t.pinned)).(map[string]any), true
		}
	}
	switch {
	case err != nil:
		return say(Error, "%v", err), object
	case !changed:
		return say(Skip, "every image has a digest"), object
	}
	return say(Pass, "mutated image digest"), object
}

// A podImage is an image of a container, where it stands.
type podImage struct {
	path []string
	text string
}

// podImages are the images of the containers of an object.
func podImages(kind resourceKind, object map[string]any) (out []podImage) {
	at := podSpecPath(kind)
	spec := podSpecOf(kind, object)
	for _, group := range podContainers() {
		items, _ := spec[group].([]any)
		for i, item := range items {
			container, _ := item.(map[string]any)
			if text, ok := container["image"].(string); ok {
				out = append(out, podImage{append(at[:len(at):len(at)], group, strconv.Itoa(i), "image"), text})
			}
		}
	}
	return out
}

func podContainers() []string { return []string{"containers", "initContainers", "ephemeralContainers"} }

// digestOf is the digest of an image that is pinned.
func digestOf(pinned string) string {
	_, digest, _ := strings.Cut(pinned, "@")
	return digest
}
