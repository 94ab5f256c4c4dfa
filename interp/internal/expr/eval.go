package expr

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// Eval gives what an expression comes to on a value. The result may share its parts
// with the value: neither may be changed. It never panics.
func Eval(ctx context.Context, e *jmespath.Expr, root Value, around Surroundings) (Value, error) {
	ev := newEvaluator(ctx, root, around)
	defer ev.settle()
	return ev.expression(e)
}

// An evaluator evaluates expressions on one root.
type evaluator struct {
	ctx    context.Context
	around Surroundings
	root   Value
	steps  int           // that are left
	given  int           // steps at the beginning
	shared *atomic.Int64 // steps of all expressions; nil where each has its own
	made   int           // bytes
	// texts are the strings and names of the expression that hold variables, with
	// these filled in. Kyverno fills them in before it looks at the expression;
	// here their text is data, and cannot become syntax.
	texts map[*jmespath.Template]Value
	items bool // whether items() was called
	// built is set where a list or map was made, which may be deeper than the data.
	built bool
}

func newEvaluator(ctx context.Context, root Value, around Surroundings) *evaluator {
	ev := &evaluator{ctx: ctx, around: around, root: root, given: maxSteps}
	if ev.shared, _ = ctx.Value(stepsKey{}).(*atomic.Int64); ev.shared != nil {
		ev.given = int(min(maxSteps, ev.shared.Load()))
	}
	ev.steps = ev.given
	return ev
}

// expression evaluates a whole expression on the root.
func (ev *evaluator) expression(e *jmespath.Expr) (Value, error) {
	if err := ev.fillTexts(e); err != nil {
		return Value{}, err
	}
	value, err := ev.eval(e, ev.root)
	if err != nil {
		return Value{}, err
	}
	if value.Data, err = ev.plain(value.Data); err == nil && ev.built {
		err = ev.bounded(value.Data, datum.MaxDepth+1)
	}
	if err != nil {
		return Value{}, err
	}
	return value, nil
}

// fillTexts resolves the variables inside the strings and names of e. One that
// fails fails the whole expression, whatever stands around it.
func (ev *evaluator) fillTexts(e *jmespath.Expr) (err error) {
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		for _, t := range []*jmespath.Template{e.Text, e.Dynamic} {
			if t == nil || err != nil {
				continue
			}
			var text Value
			if text, err = ev.text(t); err != nil {
				continue
			}
			if ev.texts == nil {
				ev.texts = map[*jmespath.Template]Value{}
			}
			ev.texts[t] = text
		}
		// The variables' own expressions were evaluated on their own.
		return err == nil && e.Text == nil && e.Dynamic == nil
	})
	return err
}

// plain makes a result plain data: a whole scope is a map, and so on.
func (ev *evaluator) plain(v any) (any, error) {
	switch v := v.(type) {
	case Scope:
		return whole(v)
	case expression:
		return nil, fmt.Errorf("an &expression is no value")
	}
	if !ev.items {
		return v, nil
	}
	if err := ev.bounded(v, datum.MaxDepth+1); err != nil {
		return nil, err
	}
	return withoutItems(v), nil
}

func whole(s Scope) (any, error) {
	if s, ok := s.(Whole); ok {
		return s.Whole()
	}
	return nil, fmt.Errorf("the whole context cannot be a value; name the entry that is meant")
}

// An expression is one given with & to a function.
type expression struct{ e *jmespath.Expr }
