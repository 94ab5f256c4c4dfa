package world

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"golang.org/x/sync/singleflight"

	"github.com/kvap/kvap/controller/internal/turns"
	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/internal/proven"
	"github.com/kvap/kvap/interp"
)

// How long what was proven counts, by the digest. What certificates prove ends with them, so
// it is asked for again soon; that nothing is proven may change when somebody signs.
const (
	provenLife      = time.Hour
	certificateLife = 5 * time.Minute
	unprovenLife    = 30 * time.Second
	tagProofLife    = 10 * time.Second
	proofTimeout    = 15 * time.Second
	maxProofs       = 2000
	maxProofBytes   = 32 << 20
	maxAsking       = 64       // questions that are asked at once
	maxOfHost       = 16       // of one registry: who does not answer keeps those waiting that ask it
	maxHeldBytes    = 64 << 20 // of signatures and attestations that are being read
)

// An Asked is a question about an image that was asked, and what came of it.
type Asked struct {
	What   string // digest, signature or attestation
	Answer Answer
	Took   time.Duration
}

// An Answer is what came of a question, in a word.
type Answer string

// The answers: one that was known, what is proven, what is not, what cannot be known now, and what
// may not be asked.
const (
	Known       Answer = "known"
	Proven      Answer = "proven"
	Unproven    Answer = "unproven"
	Unreachable Answer = "unreachable"
	Refused     Answer = "refused"
)

// proofs is what was proven of images. It implements interp.Registry.
type proofs struct {
	world  *World
	asking *turns.Turns // of all registries, and of one
	flight singleflight.Group
	budget *images.Budget

	mu    sync.Mutex
	known map[string]proof
	bytes int
}

// A proof is what came of a question.
type proof struct {
	image      string
	statements []map[string]any
	err        error
	size       int
	until      time.Time
}

func newProofs(w *World) *proofs {
	return &proofs{world: w, asking: turns.New(maxAsking, maxOfHost), budget: images.NewBudget(maxHeldBytes), known: map[string]proof{}}
}

// Registry proves what is signed of images.
func (w *World) Registry() interp.Registry { return w.proofs }

// Pinned is the image that a reference means.
func (p *proofs) Pinned(ctx context.Context, reference string, with interp.Access) (string, error) {
	got := p.ask(ctx, question{What: "digest", Image: reference, With: with}, func(ctx context.Context, r images.Registry) proof {
		image, err := r.Resolve(ctx, reference)
		if err != nil {
			return proof{err: err, until: time.Now()}
		}
		return proof{image: image.String(), until: time.Now().Add(tagProofLife)}
	})
	return got.image, got.err
}

// Signed is nil where the image has a signature by an attestor.
func (p *proofs) Signed(ctx context.Context, image string, by interp.Attestor, with interp.Access) error {
	trust := p.world.trust()
	return p.ask(ctx, question{What: "signature", Image: image, By: by, With: with, Trust: trust.ID()}, func(ctx context.Context, r images.Registry) proof {
		pinned, v, err := p.prover(image, by, trust)
		if err == nil {
			err = v.Signed(ctx, r, pinned)
		}
		return proof{err: err, until: until(v, by, err)}
	}).err
}

// Attested are statements by an attestor about the image.
func (p *proofs) Attested(ctx context.Context, image, kind string, by interp.Attestor, with interp.Access) ([]map[string]any, error) {
	trust := p.world.trust()
	got := p.ask(ctx, question{What: "attestation", Kind: kind, Image: image, By: by, With: with, Trust: trust.ID()}, func(ctx context.Context, r images.Registry) proof {
		pinned, v, err := p.prover(image, by, trust)
		var statements []images.Statement
		if err == nil {
			statements, err = v.Attested(ctx, r, pinned, kind)
		}
		out := proof{err: err, until: until(v, by, err)}
		for _, s := range statements {
			out.statements = append(out.statements, s.Content)
			out.size += weight(s.Content)
		}
		return out
	})
	return got.statements, got.err
}

func (p *proofs) prover(image string, by interp.Attestor, trust *images.Trust) (images.Image, *images.Verifier, error) {
	pinned, err := images.Pinned(image)
	if err != nil {
		return pinned, nil, err
	}
	v, err := proven.Verifier(by, trust, p.world.options.BindRepository, time.Now)
	return pinned, v, err
}

// until is when what came of a question is asked for again. v is nil where by cannot be read.
func until(v *images.Verifier, by interp.Attestor, err error) time.Time {
	out := time.Now().Add(life(by, err))
	if v != nil && err == nil {
		if ends := v.Until(); !ends.IsZero() && ends.Before(out) {
			return ends
		}
	}
	return out
}

func life(by interp.Attestor, err error) time.Duration {
	switch {
	case err != nil:
		return unprovenLife
	case by.Certificate != "" || by.Chain != "" || by.Keyless != nil && by.IgnoreLog:
		return certificateLife
	}
	return provenLife
}

// A question is what is asked: all that the answer depends on.
type question struct {
	What, Kind, Image string
	By                interp.Attestor
	With              interp.Access
	Trust             string // the ID of whom signatures without keys are trusted by
}

// host is the registry that is asked.
func (q question) host() string {
	host, _, _ := strings.Cut(cmp.Or(q.By.Repository, q.Image), "/")
	return host
}

// ask is what is known, or what find finds out: once for all who ask it at the same time.
// Their time is their own; the question has its own too. Of a registry that cannot be asked
// nothing is known afterwards.
func (p *proofs) ask(ctx context.Context, q question, find func(context.Context, images.Registry) proof) proof {
	key, err := json.Marshal(q)
	if err != nil {
		return proof{err: err}
	}
	if found, ok := p.get(string(key)); ok && !q.With.Fresh {
		p.tell(q, Known, time.Now())
		return found
	}
	answer := p.flight.DoChan(string(key), func() (out any, _ error) {
		defer func() { // of all who asked; a panic in a flight would end the process
			if r := recover(); r != nil {
				out = proof{err: fmt.Errorf("asking about %s failed unexpectedly: %v", q.Image, r)}
			}
		}()
		began, answer := time.Now(), Unreachable
		defer func() { p.tell(q, answer, began) }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofTimeout)
		defer cancel()
		done, err := p.asking.Take(ctx, q.host(), q.host())
		if err != nil {
			return proof{err: fmt.Errorf("%w: %w: %s", interp.ErrUnreachable, err, q.host())}, nil
		}
		defer done()
		r, missing, err := p.world.registry(ctx, q)
		if err != nil && !errors.Is(err, images.ErrUnreachable) {
			answer = Refused
			return proof{err: err}, nil
		}
		r.Budget = p.budget
		found := proof{err: err}
		if err == nil {
			found = find(ctx, r)
		}
		if found.err != nil && missing != nil {
			found.err = fmt.Errorf("%w; %w", found.err, missing)
		}
		unreachable := errors.Is(found.err, images.ErrUnreachable)
		if found.err = brief(found.err); unreachable {
			found.err = fmt.Errorf("%w: %w", interp.ErrUnreachable, found.err)
			return found, nil
		}
		if answer = Proven; found.err != nil {
			answer = Unproven
		}
		p.put(string(key), found)
		return found, nil
	})
	select {
	case got := <-answer:
		return got.Val.(proof)
	case <-ctx.Done():
		return proof{err: fmt.Errorf("%w: %w", interp.ErrUnreachable, ctx.Err())}
	}
}

// tell tells of a question.
func (p *proofs) tell(q question, answer Answer, began time.Time) {
	if told := p.world.options.Asked; told != nil {
		told(Asked{What: q.What, Answer: answer, Took: time.Since(began)})
	}
}

// brief is an error as a text, which is kept, told and written to logs: without the answers of
// registries that it has, and shortened.
func brief(err error) error {
	const most = 1000
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return errors.New(text)
}

// registry is how a question is asked, if the list of registries allows it.
// missing says which pull secrets of the Pod it is done without.
func (w *World) registry(ctx context.Context, q question) (r images.Registry, missing, err error) {
	wanted, _ := q.With.Credentials.(map[string]any)
	insecure, _ := wanted["allowInsecureRegistry"].(bool)
	var options []name.Option
	if insecure {
		options = append(options, name.Insecure)
	}
	asked := []string{q.Image}
	if q.By.Repository != "" {
		asked = append(asked, q.By.Repository)
	}
	for _, text := range asked {
		ref, err := name.ParseReference(text, options...)
		if err != nil {
			return r, nil, fmt.Errorf("%q is no image reference: %w", text, err)
		}
		if !w.mayAsk(ref) {
			return r, nil, fmt.Errorf("%w: the registry of %s is not allowed; name it with --image-registries", interp.ErrRefused, text)
		}
	}
	keys, missing, err := w.keychain(ctx, q.With)
	return images.Registry{Credentials: keys, Insecure: insecure, Local: w.options.LocalRegistries}, missing, err
}

// weight is how many bytes a document takes, about: many more than its text where that has many
// small things in it.
func weight(value any) int {
	const word, slot = 16, 32
	switch v := value.(type) {
	case string:
		return word + len(v)
	case []any:
		out := 2 * word
		for _, one := range v {
			out += word + weight(one)
		}
		return out
	case map[string]any:
		out := 3 * word
		for key, one := range v {
			out += slot + len(key) + weight(one)
		}
		return out
	}
	return word
}

func (p *proofs) get(key string) (proof, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.known[key]
	return found, ok && time.Now().Before(found.until)
}

func (p *proofs) put(key string, found proof) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxProofs || p.bytes+found.size > maxProofBytes {
		p.forget()
	}
	p.bytes += found.size - p.known[key].size
	p.known[key] = found
}

// forget drops what is too old; all, if that is too little.
func (p *proofs) forget() {
	now := time.Now()
	for key, one := range p.known {
		if now.After(one.until) {
			p.bytes -= one.size
			delete(p.known, key)
		}
	}
	if len(p.known) >= maxProofs/2 || p.bytes > maxProofBytes/2 {
		clear(p.known)
		p.bytes = 0
	}
}
