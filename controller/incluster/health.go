package incluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/shadow"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// ruleHealth knows which rules of the webhook can do nothing but err: those that read a
// ConfigMap that is not there, or are about images of registries that nobody may ask, and those
// that have erred on the last requests that this process was asked about.
type ruleHealth struct {
	world   lookups
	changed func()

	mu       sync.Mutex
	policies map[*policy.Policy]controller.RemainingPolicy
	missing  map[types.NamespacedName]bool             // ConfigMaps that were looked for
	errors   map[*policy.Policy]map[string]*ruleErrors // by rule
	turned   map[*policy.Policy]bool                   // other rules err than was told
}

// lookups are what of the world rules look up.
type lookups interface {
	ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error)
	MayAskAny(pattern string) bool
}

// ruleErrors are those of a rule since it last judged a request.
type ruleErrors struct {
	requests int
	message  string // of the one from which on it is told: another for each request would be news all the time
}

// What is said of rules that err: from how many requests on, of how many rules of a policy.
const (
	errsFrom    = 3
	maxErring   = 10
	lookupEvery = 5 * time.Second
	lookupTime  = 2 * time.Second // of all ConfigMaps, while a pass waits
)

func newRuleHealth(world lookups, changed func()) *ruleHealth {
	return &ruleHealth{world: world, changed: changed, errors: map[*policy.Policy]map[string]*ruleErrors{}, turned: map[*policy.Policy]bool{}}
}

// set says which policies are served from now on. What is known of the others is forgotten. Of
// those that are new it is told that no rule errs: a process of this name may have said otherwise.
// Of another version of a policy, of which the same rules remain, it is told again which err.
func (h *ruleHealth) set(policies map[*policy.Policy]controller.RemainingPolicy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, now := range policies {
		before, served := h.policies[p]
		another := now.Generation != before.Generation || now.Source != before.Source
		if !served || another && len(h.erring(p)) > 0 {
			h.turned[p] = true
		}
	}
	h.policies = maps.Clone(policies)
	maps.DeleteFunc(h.errors, func(p *policy.Policy, _ map[string]*ruleErrors) bool {
		_, served := h.policies[p]
		return !served
	})
}

// note counts what a rule says of a request.
func (h *ruleHealth) note(r webhook.Record) {
	if r.Err != nil || r.Status == interp.Skip {
		return // nothing was asked of the rule
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, served := h.policies[r.Of]; !served {
		return
	}
	known := h.errors[r.Of][r.Rule]
	if r.Status != interp.Error {
		delete(h.errors[r.Of], r.Rule)
		if known != nil && known.requests >= errsFrom {
			h.turned[r.Of] = true
		}
		return
	}
	if h.errors[r.Of] == nil {
		h.errors[r.Of] = map[string]*ruleErrors{}
	}
	if known == nil {
		known = &ruleErrors{}
		h.errors[r.Of][r.Rule] = known
	}
	if known.requests++; known.requests == errsFrom {
		known.message = shadow.MessageOf(r)
		h.turned[r.Of] = true
	}
}

// run looks again and again for what rules read, until the context ends.
func (h *ruleHealth) run(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if h.look(ctx, true) {
			h.changed()
		}
	}, lookupEvery)
	return nil
}

// look finds which ConfigMaps are missing that rules read, of all or of those that it has not
// looked for, and tells whether they are others than before. Where that is not known, what was
// known stays.
func (h *ruleHealth) look(ctx context.Context, all bool) (changed bool) {
	h.mu.Lock()
	before, now := h.missing, map[types.NamespacedName]bool{}
	for p := range h.policies {
		for _, of := range configMapsOf(p) {
			now[of] = before[of]
		}
	}
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	for of := range now {
		_, known := before[of]
		if known && !all {
			continue
		}
		switch _, err := h.world.ConfigMap(ctx, of.Namespace, of.Name); {
		case err == nil:
			now[of] = false
		case errors.Is(err, interp.ErrNotFound):
			now[of] = true
		case !known:
			delete(now, of)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.missing = now
	return !maps.Equal(before, now)
}

// configMapsOf are the ConfigMaps that rules of a policy read whatever is asked.
func configMapsOf(p *policy.Policy) (out []types.NamespacedName) {
	for _, r := range p.Rules {
		for _, e := range r.ContextEntries() {
			if e.ConfigMap == nil {
				continue
			}
			if namespace, name, ok := e.ConfigMap.Fixed(p); ok {
				out = append(out, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
	return out
}

// problems are what is known, in a fixed order.
func (h *ruleHealth) problems() []controller.FallbackProblem {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []controller.FallbackProblem
	for p, one := range h.policies {
		out = append(out, h.problemsOf(p, one.Source)...)
	}
	slices.SortStableFunc(out, func(a, b controller.FallbackProblem) int {
		return cmp.Or(cmp.Compare(controller.TranslationName(a.Source), controller.TranslationName(b.Source)), cmp.Compare(a.Message, b.Message))
	})
	return out
}

func (h *ruleHealth) problemsOf(p *policy.Policy, source v1alpha1.PolicyReference) (out []controller.FallbackProblem) {
	for _, of := range configMapsOf(p) {
		if h.missing[of] {
			out = append(out, controller.FallbackProblem{Source: source, Missing: true, Message: fmt.Sprintf("a rule that the webhook judges by reads the ConfigMap %s, which does not exist: "+
				"a request that the rule matches is refused where it comes to read it, or admitted under failurePolicy Ignore; make the ConfigMap", of)})
		}
	}
	for _, pattern := range imagesOf(p) {
		if !h.world.MayAskAny(pattern) {
			out = append(out, controller.FallbackProblem{Source: source, Stuck: controller.ReasonRegistryNotAllowed,
				Message: fmt.Sprintf("the registry of the images %s may not be asked, so that its rule errs on all of them; name it with --image-registries", pattern)})
		}
	}
	return out
}

// An erringPolicy is a policy, and its rules that err on each request.
type erringPolicy struct {
	controller.RemainingPolicy
	rules []v1alpha1.ErringRule
}

// news are the policies of which other rules err than when it was asked last.
func (h *ruleHealth) news() (out []erringPolicy) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.turned {
		if source, served := h.policies[p]; served {
			out = append(out, erringPolicy{source, h.erring(p)})
		}
	}
	clear(h.turned)
	return out
}

// again has a policy told once more, which could not be.
func (h *ruleHealth) again(source v1alpha1.PolicyReference) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, of := range h.policies {
		if of.Source == source {
			h.turned[p] = true
		}
	}
}

// erring are the rules of a policy that err on each request, as far as they are told.
func (h *ruleHealth) erring(p *policy.Policy) (out []v1alpha1.ErringRule) {
	for rule, known := range h.errors[p] {
		if known.requests >= errsFrom {
			out = append(out, v1alpha1.ErringRule{Rule: rule, Message: known.message})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.ErringRule) int { return cmp.Compare(a.Rule, b.Rule) })
	return out[:min(len(out), maxErring)]
}

// imagesOf are the patterns of images that a policy is about, of rules that verify them.
func imagesOf(p *policy.Policy) (out []string) {
	for _, r := range p.Rules {
		for _, v := range r.VerifyImages {
			out = append(out, v.References...)
		}
	}
	if images := p.ImagePolicy(); images != nil {
		for _, ref := range images.References {
			if ref.Glob != "" {
				out = append(out, ref.Glob)
			}
		}
		if len(images.References) == 0 {
			out = append(out, "*")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
