package interp

import (
	"errors"
	"strconv"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
)

// judgeLoops holds every element of every list to its check. The first that is
// violated, or errs, decides. Without any element that was checked, there is
// nothing to say.
func (val *validation) judgeLoops(loops []*loop) verdict {
	applied := 0
	var listErr error
	for _, l := range loops {
		elements, err := val.elements(l)
		if err != nil {
			if !expr.IsUnknownKey(err) {
				listErr = errors.Join(listErr, err)
			}
			continue
		}
		n, bad := val.judgeElements(l, elements)
		if bad != nil {
			return *bad
		}
		applied += n
	}
	switch {
	case applied > 0:
		return say(Pass, "rule passed")
	case listErr != nil:
		return say(Error, "failed to evaluate list: %v", listErr)
	}
	return none()
}

// elements evaluates a loop's list. What is not a list is its only element.
func (val *validation) elements(l *loop) ([]any, error) {
	if l.listErr != nil {
		return nil, l.listErr
	}
	if err := val.vars.prepare(l.listText); err != nil {
		return nil, err
	}
	value, err := val.vars.evaluate(l.list)
	if err != nil {
		return nil, err
	}
	if list, ok := value.([]any); ok {
		return list, nil
	}
	return []any{value}, nil
}

// judgeElements counts the elements that pass; bad is the first that does not.
func (val *validation) judgeElements(l *loop, elements []any) (applied int, bad *verdict) {
	from := val.vars.elementSource(l.list)
	for i, element := range elements {
		if element == nil {
			continue
		}
		out := val.judgeElement(l, i, element, from)
		switch out.status {
		case None, Skip:
		case Pass:
			applied++
		default:
			if out.status == Error && strings.Contains(out.message, "failed to evaluate preconditions") {
				continue
			}
			out.message = "validation failure: " + out.message
			return applied, &out
		}
	}
	return applied, nil
}

func (val *validation) judgeElement(l *loop, index int, element any, from fieldOrigin) verdict {
	_, isMap := element.(map[string]any)
	inScope := isMap
	if l.elementScope != nil {
		inScope = *l.elementScope
	}
	if inScope && !isMap {
		return say(Error, "failed to process foreach: elementScope needs elements that are maps, element %d is %s", index, datum.TypeName(element))
	}
	val.openElement(index, element, from)
	defer val.vars.pop()
	val.vars.defineAll(l.entries, val.review)
	applies, message, err := l.preconditions.holds(val.vars)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate preconditions: %v", err)
	case !applies:
		return say(Skip, "%s", joinMessages("preconditions not met", message))
	}
	inner := *val
	inner.nesting++
	inner.filled = nil
	if inScope {
		inner.element, inner.inElement, inner.at = element, true, from.at
	}
	return inner.judge(l.check)
}

// openElement opens a level with the variables of an element.
func (val *validation) openElement(index int, element any, from fieldOrigin) {
	depth := strconv.Itoa(val.nesting)
	level := val.vars.push(map[string]any{
		"element": element, "element" + depth: element,
		"elementIndex": int64(index), "elementIndex" + depth: int64(index),
	})
	level.origins["element"], level.origins["element"+depth] = from, from
}
