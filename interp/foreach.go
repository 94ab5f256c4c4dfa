package interp

import (
	"errors"
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
		elements, err := val.vars.listOf(l.listText, l.list, l.listErr)
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

// judgeElements counts the elements that pass; bad is the first that does not.
func (val *validation) judgeElements(l *loop, elements []expr.Value) (applied int, bad *verdict) {
	for i, element := range elements {
		if element.Data == nil {
			continue
		}
		out := val.judgeElement(l, i, element)
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

func (val *validation) judgeElement(l *loop, index int, element expr.Value) verdict {
	_, isMap := element.Data.(map[string]any)
	inScope := isMap
	if l.elementScope != nil {
		inScope = *l.elementScope
	}
	if inScope && !isMap {
		return say(Error, "failed to process foreach: elementScope needs elements that are maps, element %d is %s", index, datum.TypeName(element.Data))
	}
	val.vars.pushElement(element, index, val.nesting)
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
		inner.element, inner.inElement, inner.at = element.Data, true, element.From.At
	}
	return inner.judge(l.check)
}
