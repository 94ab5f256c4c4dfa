package interp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/policy"
)

// An imageSession is what an ImageValidatingPolicy asks of the images of one request. It
// implements cellib.Images.
//
// Expressions ask one thing after the other, and registries are slow. So the first time that an
// expression is evaluated each question is begun and errs, for all of an object's images; when
// all are answered the expression is evaluated again.
type imageSession struct {
	a        *preparedRequest
	form     *validatingForm
	scope    celScope
	registry Registry
	with     Access
	verified *Verified

	matched map[string]image // by the text in the object
	order   []string         // of those texts

	attestors map[string]signedBy // with their expressions evaluated
	pins      sync.Map            // of texts to pinned; all that is proven of a text is of one digest
	payloads  map[string]any      // proven, by image and attestation

	pending   bool // questions are begun and not waited for
	turns     chan struct{}
	all       sync.WaitGroup
	questions map[string]*pendingFetch

	unreachable error    // why a registry could not be asked
	unsupported bool     // for there is none
	why         []string // attestors did not sign
}

// signedBy is an attestor: any of several identities may have signed.
type signedBy struct {
	any  []Attestor
	with Access
	err  error
}

// A pendingFetch is a question and, when it is done, what came of it.
type pendingFetch struct {
	done  bool
	value any
	err   error
}

type pinned struct {
	once  sync.Once
	image string
	err   error
}

// errPending is what a question is answered with until it is known.
var errPending = errors.New("it is not known yet")

func newImageSession(a *preparedRequest, f *validatingForm, scope celScope) *imageSession {
	s := &imageSession{
		a: a, form: f, scope: scope, registry: a.world.Registry(), verified: a.verified, matched: map[string]image{},
		attestors: map[string]signedBy{}, payloads: map[string]any{}, turns: make(chan struct{}, imagesTogether), questions: map[string]*pendingFetch{},
	}
	s.with.Credentials = f.images.Credentials.Value()
	if f.policy.Namespaced() {
		s.with.Namespace = f.policy.Namespace
	}
	s.with = a.asPod(s.with)
	maps.Copy(scope, cellib.ImageScope(s, f.images.names, slices.Collect(maps.Keys(f.images.types))))
	return s
}

// read takes the text of an image apart.
func (s *imageSession) read(text string) (image, error) {
	if validDigest(text) {
		return image{}, errImageID
	}
	return parseImage(text, s.a.limits.registry())
}

func (s *imageSession) add(text string, i image) {
	if _, ok := s.matched[text]; !ok {
		s.matched[text], s.order = i, append(s.order, text)
	}
}

// fresh are variables of which none was evaluated.
func (s *imageSession) fresh() { s.scope = s.scope.with(s.a.ctx, s.form.cel) }

// eval evaluates an expression, as often as it asks for more.
func (s *imageSession) eval(program cel.Program) (ref.Val, error) {
	const most = 10
	s.pending = s.form.images.together
	for range most {
		begun := len(s.questions)
		out, err := s.scope.eval(s.a.ctx, program)
		if len(s.questions) == begun || !s.pending {
			s.pending = false
			return out, err
		}
		s.all.Wait()
		s.fresh()
	}
	s.pending = false
	return s.scope.eval(s.a.ctx, program)
}

// ask is what find finds out, once for the request.
func (s *imageSession) ask(key string, find func(context.Context) (any, error)) (any, error) {
	if s.registry == nil {
		s.unsupported = true
		return nil, errors.New("no registry is at hand")
	}
	q := s.questions[key]
	if q == nil {
		q = &pendingFetch{}
		s.questions[key] = q
		s.all.Go(func() {
			s.turns <- struct{}{}
			defer func() { <-s.turns }()
			defer func() {
				if p := recover(); p != nil {
					q.err = fmt.Errorf("%w: %v", errPanic, p)
				}
			}()
			q.value, q.err = find(s.a.ctx)
		})
		if s.pending {
			return nil, errPending
		}
	}
	s.all.Wait()
	if !q.done {
		q.done = true
		if errors.Is(q.err, ErrUnreachable) {
			s.unreachable = q.err
		}
	}
	return q.value, q.err
}

// image is one that the policy is about; ok is false for others.
func (s *imageSession) image(text string) (i image, ok bool, err error) {
	if i, ok = s.matched[text]; ok {
		return i, true, nil
	}
	if i, err = s.read(text); err != nil {
		return i, false, err
	}
	ok, err = s.form.images.selects(s.a.ctx, text, i)
	return i, ok, err
}

// pin is an image by its digest: of a tag what the registry said when it was first asked.
func (s *imageSession) pin(ctx context.Context, text string, i image) (string, error) {
	found, _ := s.pins.LoadOrStore(text, &pinned{})
	p := found.(*pinned)
	p.once.Do(func() { p.image, p.err = s.registry.Pinned(ctx, i.pullReference(), s.with) })
	return p.image, p.err
}

// Signatures implements cellib.Images.
func (s *imageSession) Signatures(text string, by []string) (int, error) {
	return s.count(text, by, "signature", func(ctx context.Context, pinned string, a Attestor, with Access) (any, error) {
		return nil, s.registry.Signed(ctx, pinned, a, with)
	}, nil)
}

// Attestations implements cellib.Images. Where several statements are proven, what counts is the
// last, which who attests has added to those before.
func (s *imageSession) Attestations(text, attestation string, by []string) (int, error) {
	kind, ok := s.form.images.types[attestation]
	if !ok {
		return 0, fmt.Errorf("the policy has no attestation %q", attestation)
	}
	referrer := slices.Contains(s.form.images.referrers, attestation)
	for _, name := range by {
		if a, ok := s.form.images.attestors[name]; ok && a.Notary != referrer {
			return 0, fmt.Errorf("the attestation %s is not for the attestor %s: a referrer is attested by notary, intoto by cosign", attestation, name)
		}
	}
	return s.count(text, by, "attestation "+attestation, func(ctx context.Context, pinned string, a Attestor, with Access) (any, error) {
		statements, err := s.registry.Attested(ctx, pinned, kind, a, with)
		if err != nil || len(statements) == 0 {
			return nil, cmpError(err, "there is no attestation")
		}
		if last := statements[len(statements)-1]; !referrer {
			return last, nil
		}
		return statements[len(statements)-1]["predicate"], nil
	}, func(statement any) { s.payloads[text+"\x00"+attestation] = statement })
}

func cmpError(err error, otherwise string) error {
	if err != nil {
		return err
	}
	return errors.New(otherwise)
}

// count is how many attestors prove something of an image. One that does not is not an error; that
// nobody can be asked is one.
func (s *imageSession) count(text string, by []string, what string, prove func(context.Context, string, Attestor, Access) (any, error), keep func(any)) (int, error) {
	i, ok, err := s.image(text)
	if err != nil || !ok {
		return 0, err
	}
	proven, waits := 0, false
	var failed error
	for _, name := range by {
		a := s.attestor(name)
		if a.err != nil {
			return 0, fmt.Errorf("the attestor %s: %w", name, a.err)
		}
		value, err := s.ask(strings.Join([]string{what, text, name}, "\x00"), func(ctx context.Context) (any, error) {
			at, err := s.pin(ctx, text, i)
			if err != nil {
				return nil, notFetched{err}
			}
			return a.proves(ctx, at, prove)
		})
		var lost notFetched
		switch {
		case err == nil:
			proven++
			s.verified.note(text, nil)
			if keep != nil {
				keep(value)
			}
		case errors.Is(err, errPending):
			waits = true
		case s.unsupported, errors.As(err, &lost), errors.Is(err, ErrUnreachable), errors.Is(err, ErrRefused):
			failed = errors.Join(failed, fmt.Errorf("failed to verify image %s: %w", text, err))
		default:
			s.verified.note(text, fmt.Errorf("%s: %w", name, err))
			s.because(fmt.Sprintf("image %s: %s: %v", text, name, err))
		}
	}
	if waits {
		return 0, errPending
	}
	return proven, failed
}

// notFetched is the error of an image that no registry has.
type notFetched struct{ error }

// Unwrap has the reason.
func (e notFetched) Unwrap() error { return e.error }

// because keeps why an attestor has not signed.
func (s *imageSession) because(why string) {
	if len(s.why) < maxReasons && !slices.Contains(s.why, why) {
		s.why = append(s.why, why)
	}
}

// reasons are those of attestors that have not signed.
func (s *imageSession) reasons() string { return strings.Join(s.why, "; ") }

// proves is what the first of the attestor's identities that does proves.
func (b signedBy) proves(ctx context.Context, image string, prove func(context.Context, string, Attestor, Access) (any, error)) (any, error) {
	err := errors.New("it names nobody")
	unknown := error(nil)
	for _, a := range b.any {
		var value any
		if value, err = prove(ctx, image, a, b.with); err == nil {
			return value, nil
		}
		if errors.Is(err, ErrUnreachable) {
			unknown = err
		}
	}
	if unknown != nil {
		return nil, unknown
	}
	return nil, err
}

// Payload implements cellib.Images.
func (s *imageSession) Payload(text, attestation string) (any, error) {
	if _, ok := s.form.images.types[attestation]; !ok {
		return nil, fmt.Errorf("the policy has no attestation %q", attestation)
	}
	if found, ok := s.payloads[text+"\x00"+attestation]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("the attestation %s of image %s is not verified; call verifyAttestationSignatures first", attestation, text)
}

// Data implements cellib.Images.
func (s *imageSession) Data(text string) (map[string]any, error) {
	i, err := s.read(text)
	if err != nil {
		return nil, err
	}
	if s.registry == nil {
		return s.a.world.Image(s.a.ctx, i.pullReference(), s.with)
	}
	value, err := s.ask("data\x00"+text, func(ctx context.Context) (any, error) {
		return s.a.world.Image(ctx, i.pullReference(), s.with)
	})
	found, _ := value.(map[string]any)
	return found, err
}

// attestor is one of the policy, with its expressions evaluated.
func (s *imageSession) attestor(name string) signedBy {
	if found, ok := s.attestors[name]; ok {
		return found
	}
	out := s.readAttestor(s.form.images.attestors[name])
	s.attestors[name] = out
	return out
}

func (s *imageSession) readAttestor(a *celAttestor) (out signedBy) {
	by := Attestor{
		Algorithm: a.Hash, Annotations: pairsOf(a.Annotations), Repository: a.Repository, TagPrefix: a.TagPrefix,
		IgnoreLog: a.Log.Ignored, LogKey: a.Log.Key.Value, Stamps: a.Log.Stamps.Value, CertificateLog: a.Log.Certificates.Value, Format: LayersOrBundles,
		LoggedCertificates: !a.IgnoreSCT,
	}
	if a.Notary {
		by.Format, by.LoggedCertificates = Notation, false
	}
	for _, t := range []struct {
		of      policy.CELText
		program cel.Program
		into    *string
	}{{a.Key, a.key, &by.Key}, {a.Certificate, a.certificate, &by.Certificate}, {a.Chain, a.chain, &by.Chain}, {a.Stamps, a.stamps, &by.Stamps}, {a.TrustedRoot, a.root, &by.TrustedRoot}} {
		if t.of.Value != "" {
			*t.into = t.of.Value
		}
		if t.program == nil {
			continue
		}
		value, err := s.scope.eval(s.a.ctx, t.program)
		if err != nil {
			out.err = err
			return out
		}
		text, ok := value.Value().(string)
		if !ok || text == "" {
			out.err = fmt.Errorf("the expression %q gives no text", t.of.Expression)
			return out
		}
		*t.into = text
	}
	out.with = s.with
	if len(a.PullSecrets) > 0 {
		out.with.Credentials = withSecrets(s.with.Credentials, a.PullSecrets)
	}
	if len(a.Identities) == 0 {
		out.any = []Attestor{by}
		return out
	}
	for _, i := range a.Identities {
		one := by
		one.Keyless = &Keyless{
			Issuer: i.Issuer, IssuerRegExp: i.IssuerRegExp, Subject: i.Subject, SubjectRegExp: i.SubjectRegExp, Exact: true,
			Roots: a.Roots, IgnoreSCT: a.IgnoreSCT, Extensions: pairsOf(a.Extensions),
		}
		out.any = append(out.any, one)
	}
	return out
}

// withSecrets are credentials with more pull secrets.
func withSecrets(credentials any, more []string) map[string]any {
	before, _ := credentials.(map[string]any)
	out := maps.Clone(before)
	if out == nil {
		out = map[string]any{}
	}
	secrets, _ := out["secrets"].([]any)
	secrets = slices.Clone(secrets)
	for _, one := range more {
		secrets = append(secrets, one)
	}
	out["secrets"] = secrets
	return out
}

// textsOf is a value of CEL as texts.
func textsOf(value ref.Val) ([]string, error) {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("it gives a %s, not a list of strings", value.Type().TypeName())
	}
	out := []string{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		item := it.Next()
		text, ok := item.Value().(string)
		if !ok {
			return nil, fmt.Errorf("it gives a list with a %s in it", item.Type().TypeName())
		}
		out = append(out, text)
	}
	return out, nil
}

func sortedKeys(m map[string][]string) []string { return datum.Keys(m) }
