package interp

import (
	"fmt"

	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// maxElements bounds how many elements the loops of one rule visit: loops within
// loops multiply.
const maxElements = 50_000

// A mutateLoop is an entry of mutate.foreach.
type mutateLoop struct {
	list          *jmespath.Expr
	listText      string
	listErr       error
	descending    bool
	entries       []*contextEntry
	preconditions *conditions
	body          *mutateBody
}

func readMutateLoop(p *policy.Policy, f *policy.MutateForEach, current string) *mutateLoop {
	l := &mutateLoop{
		listText: f.List.Value, entries: readEntries(p, f.Context), preconditions: readConditions(f.Preconditions, denying),
		body: readMutateBody(p, f.Patch, f.ForEach, current),
	}
	// Merging puts elements in front, so the last comes first.
	l.descending = f.Order == policy.Descending || f.Order == "" && f.Merge != nil
	l.list, l.listErr = parseQuery(f.List.Value, f.List.Pos)
	return l
}

// A mutateRun is one run of a rule on an object.
type mutateRun struct {
	vars   *vars
	review *preparedRequest
	// now is the object as expressions see it, and show lets them see another.
	now     map[string]any
	show    func(map[string]any)
	nesting int
	left    int // elements that may still be visited
}

// see lets expressions see another object.
func (m *mutateRun) see(object map[string]any) {
	m.now = object
	m.show(object)
}

// loops runs loops one after the other. What one made of the object is
// request.object to the next. Processed counts those that changed the object.
func (m *mutateRun) loops(loops []*mutateLoop, object map[string]any) (after map[string]any, processed int, err error) {
	for _, l := range loops {
		after, err := m.loop(l, object)
		if err != nil {
			return nil, 0, err
		}
		if sameObject(object, after) {
			continue
		}
		processed++
		object = after
		m.see(object)
	}
	return object, processed, nil
}

// loop applies an entry for each element of its list, always to the whole object.
func (m *mutateRun) loop(l *mutateLoop, object map[string]any) (map[string]any, error) {
	elements, err := m.vars.listOf(l.listText, l.list, l.listErr)
	if err != nil {
		return nil, fmt.Errorf("failed to evaluate list: %w", err)
	}
	for n := range elements {
		i := n
		if l.descending {
			i = len(elements) - 1 - n
		}
		if elements[i].Data == nil {
			continue
		}
		if m.left--; m.left < 0 {
			return nil, fmt.Errorf("the foreach visits more than %d elements", maxElements)
		}
		if err := givenUp(m.vars.ctx); err != nil {
			return nil, err
		}
		if object, err = m.element(l, i, elements[i], object); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// element applies an entry for one element. What loops within see of the object is
// forgotten afterwards.
func (m *mutateRun) element(l *mutateLoop, index int, element expr.Value, object map[string]any) (map[string]any, error) {
	m.vars.pushElement(element, index, m.nesting)
	defer m.vars.pop()
	m.vars.defineAll(l.entries, m.review)
	applies, _, err := l.preconditions.holds(m.vars)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to evaluate preconditions: %w", err)
	case !applies:
		return object, nil
	}
	if len(l.body.loops) == 0 {
		after, _, err := l.body.apply(m.vars, object)
		return after, err
	}
	m.nesting++
	seen := m.now
	after, _, err := m.loops(l.body.loops, object)
	m.see(seen)
	m.nesting--
	return after, err
}
