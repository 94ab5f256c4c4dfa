package interp

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/policy"
)

// A validation judges an object, or an element of it, by a check.
type validation struct {
	rule    *rule
	review  *preparedRequest
	vars    *vars
	object  map[string]any // the new object; nil when there is none
	deletes bool
	// element is what patterns are held to inside a foreach; inElement tells
	// whether there is one.
	element   any
	inElement bool
	// at is the field of the request that patterns are held to; nil where it is none.
	at      []string
	nesting int
	// filled holds patterns whose variables are filled in already: for the old
	// object, those of the new one are kept.
	filled *filledPatterns
}

type filledPatterns struct {
	pattern, anyPattern any
	done                bool
}

// judge applies the first part of a check that is there.
func (val *validation) judge(c *check) verdict {
	if err := givenUp(val.vars.ctx); err != nil {
		return say(Error, "%v", err)
	}
	switch {
	case c.denies:
		return val.judgeDeny(c.deny)
	case c.pattern != nil || c.anyPattern != nil:
		return val.judgePatterns(c)
	case len(c.loops) > 0:
		return val.judgeLoops(c.loops)
	}
	return none()
}

// judgeDeny fails when the conditions are true.
func (val *validation) judgeDeny(c *conditions) verdict {
	denied, message, err := c.holds(val.vars)
	switch {
	case err != nil:
		return say(Error, "failed to check deny conditions: %v", err)
	case denied:
		return say(Fail, "%s", val.denyMessage(message))
	}
	return say(Pass, "validation rule '%s' passed.", val.rule.Name)
}

// judgePatterns holds the element in scope, or the new object, to the patterns.
// Without an element, a DELETE has nothing to be held to them.
func (val *validation) judgePatterns(c *check) verdict {
	if val.filled == nil || !val.filled.done {
		filled, err := val.fillPatterns(c)
		if err != nil {
			return say(Error, "variable substitution failed: %v", err)
		}
		if val.filled != nil {
			*val.filled = *filled
		} else {
			val.filled = filled
		}
	}
	var object any = val.object
	switch {
	case val.inElement:
		object = val.element
	case val.deletes || val.object == nil:
		return none()
	}
	if c.pattern != nil {
		return val.judgePattern(object, val.filled.pattern)
	}
	return val.judgeAnyPattern(object, val.filled.anyPattern)
}

func (val *validation) fillPatterns(c *check) (*filledPatterns, error) {
	f := &filledPatterns{done: true}
	var err error
	if c.pattern != nil {
		f.pattern, err = val.vars.fillPattern(c.pattern)
		return f, err
	}
	f.anyPattern, err = val.vars.fillPattern(c.anyPattern)
	return f, err
}

func (val *validation) judgePattern(object, pattern any) verdict {
	o := matchPattern(val.vars.ctx, val.vars.reading.under(val.at), object, pattern, val.review.limits.depth())
	switch o.status {
	case Pass:
		return say(Pass, "validation rule '%s' passed.", val.rule.Name)
	case Skip:
		return say(Skip, "%s", o.text)
	case Error:
		return say(Error, "%s", val.patternError(o.text))
	default:
	}
	message, err := val.patternFailure(o.path)
	if err != nil {
		return say(Error, "%v", err)
	}
	out := say(Fail, "%s", message)
	out.kyverno = o.kyverno
	return out
}

// judgeAnyPattern wants one of the patterns to hold. Skips count only if there
// are not failures; what would be an error is a failure here.
func (val *validation) judgeAnyPattern(object, patterns any) verdict {
	list, ok := patterns.([]any)
	if !ok {
		return say(Error, "anyPattern must be a list, not %s", datum.TypeName(patterns))
	}
	if len(list) == 0 {
		return say(Pass, "%s", val.rule.Validate.Message.Value)
	}
	var failures, skips []string
	for i, p := range list {
		o := matchPattern(val.vars.ctx, val.vars.reading.under(val.at), object, p, val.review.limits.depth())
		switch {
		case o.status == Pass:
			return say(Pass, "validation rule '%s' anyPattern[%d] passed.", val.rule.Name, i)
		case o.status == Skip:
			skips = append(skips, fmt.Sprintf("rule %s[%d] skipped: %s", val.rule.Name, i, o.text))
		case o.path == "":
			failures = append(failures, fmt.Sprintf("rule %s[%d] failed: %s", val.rule.Name, i, o.text))
		default:
			failures = append(failures, fmt.Sprintf("rule %s[%d] failed at path %s", val.rule.Name, i, o.path))
		}
	}
	if err := givenUp(val.vars.ctx); err != nil {
		return say(Error, "%v", err)
	}
	if len(failures) == 0 {
		return say(Skip, "%s", strings.Join(skips, "; "))
	}
	message, err := val.anyPatternFailure(failures)
	if err != nil {
		return say(Error, "%v", err)
	}
	return say(Fail, "%s", message)
}

// actionOf is the action that decides whether existing violations are let
// through. Overrides do not count.
func actionOf(r *rule, a *preparedRequest) policy.Action {
	switch {
	case a.request.Action != "":
		return a.request.Action
	case r.Validate.Action != "":
		return r.Validate.Action
	}
	return r.policy.Action
}
