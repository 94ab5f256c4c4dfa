package interp

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/kvap/kvap/jmespath"
)

// A scope is the object at the root of an expression. Its fields are looked up
// one by one, so that context entries can be loaded when they are needed; what
// they hold is plain data.
type scope interface {
	Lookup(name string) (value any, found bool, err error)
}

// A surrounded scope also says what functions see beside their arguments.
type surrounded interface {
	surroundings() surroundings
}

// A snapshotter scope can be used as a whole, by an @ at the root.
type snapshotter interface {
	snapshot() (map[string]any, error)
}

// surroundings are what functions see beside their arguments. The zero value has
// no outside: functions that need one err.
type surroundings struct {
	ctx             context.Context
	world           chance
	defaultRegistry string // docker.io if empty
}

// chance is the part of a World that functions need.
type chance interface {
	Resolve(ctx context.Context, host string) ([]netip.Addr, error)
	Now() time.Time
	Random(n int) int
}

// An unknownKeyError is a field that its map does not have. Most constructs of
// JMESPath take it as null; an expression that fails with it names something
// that the request does not hold.
type unknownKeyError struct{ key string }

func (e *unknownKeyError) Error() string { return fmt.Sprintf("Unknown key %q in path", e.key) }

// maxSteps bounds the work of one expression: nodes evaluated, elements visited,
// and a sixteenth of the bytes of text made. Data is shared, not copied, so a
// short expression can make a value that is exponentially large.
const maxSteps = 10_000_000

// maxTextSize bounds a text that a function makes.
const maxTextSize = 16 << 20

// eval gives the value of an expression for data, which is nil, a bool, int64,
// float64, string, []any or map[string]any, or a scope. The result may share its
// parts with the data: neither may be changed. It never panics.
func eval(ctx context.Context, e *jmespath.Expr, data any, around surroundings) (any, error) {
	around.ctx = ctx
	ev := newEvaluator(data, around)
	return ev.expression(e)
}

// An evaluator evaluates expressions on one root.
type evaluator struct {
	around surroundings
	root   any
	steps  int
	// texts are the strings and names of the expression that hold variables, with
	// these filled in. Kyverno fills them in before it looks at the expression;
	// here their text is data, and cannot become syntax.
	texts map[*jmespath.Template]string
	items bool // whether items() was called
}

func newEvaluator(root any, around surroundings) *evaluator {
	if around.ctx == nil {
		around.ctx = context.Background()
	}
	return &evaluator{around: around, root: root, steps: maxSteps}
}

// expression evaluates a whole expression on the root.
func (ev *evaluator) expression(e *jmespath.Expr) (any, error) {
	if err := ev.fillTexts(e); err != nil {
		return nil, err
	}
	value, err := ev.eval(e, ev.root)
	if err != nil {
		return nil, err
	}
	return ev.plain(value)
}

// fillTexts resolves the variables inside the strings and names of e. One that
// fails fails the whole expression, whatever stands around it.
func (ev *evaluator) fillTexts(e *jmespath.Expr) (err error) {
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		for _, t := range []*jmespath.Template{e.Text, e.Dynamic} {
			if t == nil || err != nil {
				continue
			}
			var text string
			if text, err = ev.text(t); err != nil {
				continue
			}
			if ev.texts == nil {
				ev.texts = map[*jmespath.Template]string{}
			}
			ev.texts[t] = text
		}
		// The variables' own expressions were evaluated on their own.
		return err == nil && e.Text == nil && e.Dynamic == nil
	})
	return err
}

// spend counts steps, and looks now and then whether the time is up.
func (ev *evaluator) spend(n int) error {
	before := ev.steps >> 10
	ev.steps -= n
	if ev.steps>>10 == before {
		return nil
	}
	return ev.alive()
}

// alive tells whether there are steps and time left.
func (ev *evaluator) alive() error {
	if ev.steps < 0 {
		return fmt.Errorf("the expression takes too many steps; make it simpler, or its data smaller")
	}
	return ev.around.ctx.Err()
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

// plain makes a result plain data: a whole scope is a map, and so on.
func (ev *evaluator) plain(v any) (any, error) {
	switch v := v.(type) {
	case scope:
		return whole(v)
	case expression:
		return nil, fmt.Errorf("an &expression is no value")
	}
	if !ev.items {
		return v, nil
	}
	if err := ev.measure(v); err != nil {
		return nil, err
	}
	return withoutItems(v), nil
}

func whole(s scope) (any, error) {
	if s, ok := s.(snapshotter); ok {
		return s.snapshot()
	}
	return nil, fmt.Errorf("the whole context cannot be a value; name the entry that is meant")
}

// An expression is one given with & to a function.
type expression struct{ e *jmespath.Expr }
