package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/test/testregistry"
)

// insecure is how a registry of tests is asked.
func insecure() interp.Access {
	return interp.Access{Credentials: map[string]any{"allowInsecureRegistry": true}}
}

func proving(t *testing.T, o Options) *proofs {
	t.Helper()
	o.LocalRegistries = true
	return world(t, o, http.NotFound).proofs
}

func TestProofs(t *testing.T) {
	r := testregistry.New(t)
	one, two := testregistry.NewSigner(t), testregistry.NewSigner(t)
	image := r.Push("app:v1")
	r.Attach(image, "sig", one.Signature(image, nil))
	r.Attach(image, "att", one.Attestation(image, "slsa", `{"builder":"x","n":1}`))
	p := proving(t, Options{Registries: []string{r.Host}})
	by := interp.Attestor{Key: one.PEM(), IgnoreLog: true}

	if pinned, err := p.Pinned(t.Context(), r.Host+"/app:v1", insecure()); pinned != image || err != nil {
		t.Errorf("want %s, got %s %v", image, pinned, err)
	}
	if err := p.Signed(t.Context(), image, by, insecure()); err != nil {
		t.Error(err)
	}
	r.Answer(func(http.ResponseWriter, *http.Request) bool { panic("asked again") })
	if err := p.Signed(t.Context(), image, by, insecure()); err != nil {
		t.Errorf("what is known: %v", err)
	}
	r.Answer(nil)
	fresh := insecure()
	fresh.Fresh = true
	if err := p.Signed(t.Context(), image, by, fresh); err != nil || len(r.Asked()) == 0 {
		t.Errorf("what does not count: %v, asked %v", err, r.Asked())
	}
	for what, other := range map[string]interp.Attestor{
		"another key": {Key: two.PEM(), IgnoreLog: true}, "annotation": {Key: one.PEM(), IgnoreLog: true, Annotations: map[string]string{"a": "b"}},
		"transparency log": {Key: one.PEM()}, "no PEM block": {Key: "x", IgnoreLog: true},
	} {
		if err := p.Signed(t.Context(), image, other, insecure()); err == nil || errors.Is(err, interp.ErrUnreachable) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	predicates, err := p.Attested(t.Context(), image, "slsa", by, insecure())
	if err != nil || len(predicates) != 1 || predicates[0]["predicate"].(map[string]any)["n"] != int64(1) {
		t.Errorf("got %v %v", predicates, err)
	}
	if _, err := p.Attested(t.Context(), image, "vuln", by, insecure()); err == nil {
		t.Error("another type is attested")
	}
}

// A tag that moves is another image.
func TestMovedTag(t *testing.T) {
	r := testregistry.New(t)
	one := testregistry.NewSigner(t)
	image := r.Push("app:v1")
	r.Attach(image, "sig", one.Signature(image, nil))
	p := proving(t, Options{Registries: []string{r.Host}})
	by := interp.Attestor{Key: one.PEM(), IgnoreLog: true}
	if err := p.Signed(t.Context(), image, by, insecure()); err != nil {
		t.Fatal(err)
	}
	moved := r.Push("app:v1")
	if err := p.Signed(t.Context(), moved, by, insecure()); err == nil {
		t.Error("the image behind the tag counts as signed")
	}
}

func TestRegistriesThatMayBeAsked(t *testing.T) {
	r := testregistry.New(t)
	image := r.Push("app:v1")
	r.Answer(nil)
	by := interp.Attestor{Key: testregistry.NewSigner(t).PEM(), IgnoreLog: true}
	for name, o := range map[string]Options{"none": {}, "another": {Registries: []string{"ghcr.io"}}} {
		if err := proving(t, o).Signed(t.Context(), image, by, insecure()); err == nil || !strings.Contains(err.Error(), "--image-registries") {
			t.Errorf("%s: %v", name, err)
		}
	}
	by.Repository = "ghcr.io/sigs"
	if err := proving(t, Options{Registries: []string{r.Host}}).Signed(t.Context(), image, by, insecure()); err == nil || !strings.Contains(err.Error(), "ghcr.io/sigs") {
		t.Errorf("the repository of signatures: %v", err)
	}
	if len(r.Asked()) > 0 {
		t.Errorf("asked %v", r.Asked())
	}
}

// Of a registry that is down nothing is known, and nothing is kept.
func TestRegistryDown(t *testing.T) {
	r := testregistry.New(t)
	one := testregistry.NewSigner(t)
	image := r.Push("app:v1")
	r.Attach(image, "sig", one.Signature(image, nil))
	p := proving(t, Options{Registries: []string{"*"}})
	by := interp.Attestor{Key: one.PEM(), IgnoreLog: true}
	r.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	if err := p.Signed(t.Context(), image, by, insecure()); !errors.Is(err, interp.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	r.Answer(nil)
	if err := p.Signed(t.Context(), image, by, insecure()); err != nil {
		t.Errorf("when it is up: %v", err)
	}
}

// Who asks the same at the same time asks once.
func TestProofsTogether(t *testing.T) {
	r := testregistry.New(t)
	one := testregistry.NewSigner(t)
	image := r.Push("app:v1")
	r.Attach(image, "sig", one.Signature(image, nil))
	p := proving(t, Options{Registries: []string{"*"}})
	all := make(chan struct{})
	r.Answer(func(http.ResponseWriter, *http.Request) bool {
		<-all
		return false
	})
	var done sync.WaitGroup
	for range 100 {
		done.Go(func() {
			if err := p.Signed(t.Context(), image, interp.Attestor{Key: one.PEM(), IgnoreLog: true}, insecure()); err != nil {
				t.Error(err)
			}
		})
	}
	close(all)
	done.Wait()
	manifests := 0
	for _, asked := range r.Asked() {
		if strings.Contains(asked, "/manifests/") {
			manifests++
		}
	}
	if manifests > 3 { // some may come when the first is answered, and is kept
		t.Errorf("asked for %d manifests", manifests)
	}
}

func TestProofsAreBounded(t *testing.T) {
	p := proving(t, Options{})
	for i := range 3 * maxProofs {
		p.put(strings.Repeat("x", i%97)+string(rune(i)), proof{size: 100_000})
		if len(p.known) > maxProofs || p.bytes > maxProofBytes+100_000 {
			t.Fatalf("%d proofs of %d bytes", len(p.known), p.bytes)
		}
	}
}

// Who has a certificate for an identity is believed by the authorities and logs that are
// trusted, and by no others.
func TestKeylessProofs(t *testing.T) {
	r := testregistry.New(t)
	root := testregistry.NewAuthority(t, nil, time.Hour)
	holder := testregistry.NewHolder(t, root, testregistry.Identity{Email: "ann@acme.io", Issuer: "https://accounts.acme.io"}, time.Now().Add(-time.Minute))
	image := r.Push("app:v1")
	r.Attach(image, "sig", holder.Certified(image))
	p := proving(t, Options{Registries: []string{"*"}})
	keyless := func(k interp.Keyless) interp.Attestor {
		k.IgnoreSCT = true
		return interp.Attestor{Keyless: &k, IgnoreLog: true}
	}
	if err := p.Signed(t.Context(), image, keyless(interp.Keyless{Subject: "*@acme.io", Roots: root.Certificate()}), insecure()); err != nil {
		t.Error(err)
	}
	if err := p.Signed(t.Context(), image, keyless(interp.Keyless{Subject: "*@acme.io"}), insecure()); err == nil {
		t.Error("an authority that nobody trusts is believed")
	}
	if err := p.Signed(t.Context(), image, keyless(interp.Keyless{Subject: "bob@acme.io", Roots: root.Certificate()}), insecure()); err == nil {
		t.Error("another subject is believed")
	}
}

// What is known of an image says nothing of who signed it.
func TestNobodyHasSigned(t *testing.T) {
	r := testregistry.New(t)
	image := r.Push("app:v1")
	p := proving(t, Options{Registries: []string{r.Host}})
	if _, err := p.Pinned(t.Context(), image, insecure()); err != nil {
		t.Fatal(err)
	}
	if err := p.Signed(t.Context(), image, interp.Attestor{}, insecure()); err == nil {
		t.Error("an image counts as signed, by nobody")
	}
}

// A question that crashes is an error to who asked it, and to nobody else.
func TestCrashingQuestion(t *testing.T) {
	p := proving(t, Options{Registries: []string{"*"}})
	got := p.ask(t.Context(), question{Image: "reg.test/app:v1", With: insecure()}, func(context.Context, images.Registry) proof { panic("x") })
	if got.err == nil || !strings.Contains(got.err.Error(), "unexpectedly") {
		t.Errorf("got %v", got.err)
	}
}

// A registry that does not answer keeps nobody from asking another.
func TestRegistryThatHangs(t *testing.T) {
	hangs, answers := testregistry.New(t), testregistry.New(t)
	one := testregistry.NewSigner(t)
	image := answers.Push("app:v1")
	answers.Attach(image, "sig", one.Signature(image, nil))
	p := proving(t, Options{Registries: []string{"*"}})
	by := interp.Attestor{Key: one.PEM(), IgnoreLog: true}
	let := make(chan struct{})
	hangs.Answer(func(http.ResponseWriter, *http.Request) bool {
		<-let
		return false
	})
	var done sync.WaitGroup
	given, giveUp := context.WithCancel(t.Context())
	for i := range 2 * maxAsking {
		done.Go(func() { _, _ = p.Pinned(given, fmt.Sprintf("%s/app:v%d", hangs.Host, i), insecure()) })
	}
	for len(hangs.Asked()) < maxOfHost {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := p.Signed(ctx, image, by, insecure()); err != nil {
		t.Error(err)
	}
	giveUp()
	close(let)
	done.Wait()
}

// What a registry answers makes no long message, and is not kept.
func TestLongAnswers(t *testing.T) {
	r := testregistry.New(t)
	r.Answer(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.Contains(q.URL.Path, "/manifests/") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(strings.Repeat("x", 60_000)))
		return true
	})
	p := proving(t, Options{Registries: []string{"*"}})
	_, err := p.Pinned(t.Context(), r.Host+"/app:v1", insecure())
	if err == nil || len(err.Error()) > 3000 || errors.Is(err, interp.ErrUnreachable) {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

// Each question is told of, with what came of it.
func TestAsked(t *testing.T) {
	r, k := testregistry.New(t), testregistry.NewSigner(t)
	signed, unsigned := r.Push("app:v1"), r.Push("app:v2")
	r.Attach(signed, "sig", k.Signature(signed, nil))
	var mu sync.Mutex
	var told []string
	p := proving(t, Options{Registries: []string{r.Host}, Asked: func(a Asked) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, a.What+" "+string(a.Answer))
	}})
	by := interp.Attestor{Key: k.PEM(), IgnoreLog: true}
	for _, image := range []string{signed, signed, unsigned, "other.test/app@" + testregistry.Digest(signed)} {
		if err := p.Signed(t.Context(), image, by, insecure()); errors.Is(err, interp.ErrRefused) != strings.HasPrefix(image, "other.test/") {
			t.Errorf("%s: %v", image, err)
		}
	}
	_, _ = p.Pinned(t.Context(), r.Host+"/app:v1", insecure())
	r.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	_, _ = p.Attested(t.Context(), signed, "t", by, insecure())
	want := []string{"signature proven", "signature known", "signature unproven", "signature refused", "digest proven", "attestation unreachable"}
	if !slices.Equal(told, want) {
		t.Errorf("want %v, got %v", want, told)
	}
}

// What is kept is counted as it lies in memory.
func TestWeight(t *testing.T) {
	small := make([]any, 100_000)
	for i := range small {
		small[i] = map[string]any{"a": "b"}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	made := make([]any, len(small))
	for i := range made {
		made[i] = map[string]any{strings.Clone("a"): strings.Clone("b")}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	took := float64(after.HeapAlloc - before.HeapAlloc)
	if got := float64(weight(made)); got < took/4 || got > 4*took {
		t.Errorf("%.0f bytes count as %.0f", took, got)
	}
	runtime.KeepAlive(made)
	if got := weight(strings.Repeat("x", 1<<20)); got < 1<<20 || got > 1<<20+100 {
		t.Errorf("a text counts as %d", got)
	}
}
