package expr

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/kvap/kvap/interp/internal/datum"
)

// maxSteps bounds the work of one expression: nodes evaluated, elements visited,
// and a sixteenth of the bytes of text that are gone through. Lists and maps share what
// is in them, so that a short expression makes one that is exponentially large to go
// through; texts are copied, and maxTextSize and maxMade bound them.
const maxSteps = 10_000_000

// maxMade bounds the bytes of what one expression makes: lists, maps and texts, and what
// its value is, were it written out. It is spent before anything is made.
const maxMade = 24 << 20

// maxTextSize bounds a text that a function makes. No object is that large.
const maxTextSize = 9 << 20

// make spends bytes of what is about to be made, which takes a step for each 64.
func (ev *evaluator) make(bytes int) error {
	ev.steps -= bytes >> 6
	if ev.made += bytes; ev.made > maxMade {
		return fmt.Errorf("the expression makes more than %d bytes; make it simpler, or its data smaller", maxMade)
	}
	return nil
}

// elementSize is about what an element of a list takes, which grows by and by; and
// entrySize what one of a map does. provenanceSize is what a Provenance takes.
const (
	elementSize    = 32
	entrySize      = 128
	provenanceSize = 80
)

// bounded tells that a value that was put together is no larger than what an expression
// may make: parts that it shares count each time. Nor has it too many levels.
func (ev *evaluator) bounded(v any, levels int) error {
	if levels == 0 {
		return fmt.Errorf("the value has more than %d levels", datum.MaxDepth)
	}
	switch v := v.(type) {
	case []any:
		if err := ev.make(elementSize / 2 * len(v)); err != nil {
			return err
		}
		for _, item := range v {
			if err := ev.bounded(item, levels-1); err != nil {
				return err
			}
		}
	case itemList:
		return ev.bounded([]any(v), levels)
	case map[string]any:
		if err := ev.make(elementSize * len(v)); err != nil {
			return err
		}
		for _, item := range v {
			if err := ev.bounded(item, levels-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// spend counts steps, and looks now and then whether the time is up.
func (ev *evaluator) spend(n int) error {
	before := ev.steps >> 10
	ev.steps -= n
	if ev.steps>>10 == before && ev.steps >= 0 {
		return nil
	}
	return ev.alive()
}

// alive tells whether there are steps and time left.
func (ev *evaluator) alive() error {
	switch {
	case ev.steps >= 0:
		return ev.ctx.Err()
	case ev.given < maxSteps:
		return fmt.Errorf("the expressions take too many steps for one request; make them simpler, or their data smaller")
	}
	return fmt.Errorf("the expression takes too many steps; make it simpler, or its data smaller")
}

// stepsKey is where a context has the steps that all its expressions share.
type stepsKey struct{}

// WithSteps bounds the steps of all expressions together that are evaluated with the context.
func WithSteps(ctx context.Context, steps int64) context.Context {
	left := &atomic.Int64{}
	left.Store(steps)
	return context.WithValue(ctx, stepsKey{}, left)
}

// settle takes what was spent off the steps that expressions share. Each takes one at least.
func (ev *evaluator) settle() {
	if ev.shared != nil {
		ev.shared.Add(int64(ev.steps-ev.given) - 1)
	}
}

// measure spends what it takes to visit all of a value, so that it can be
// compared or printed.
func (ev *evaluator) measure(v any) error {
	size := 1
	switch v := v.(type) {
	case string:
		size += len(v) >> 4
	case []any:
		for _, item := range v {
			if err := ev.measure(item); err != nil {
				return err
			}
		}
	case itemList:
		return ev.measure([]any(v))
	case map[string]any:
		for key, item := range v {
			size += len(key) >> 4
			if err := ev.measure(item); err != nil {
				return err
			}
		}
	}
	return ev.spend(size)
}
