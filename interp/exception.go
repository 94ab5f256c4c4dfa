package interp

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/wildcard"
	"github.com/kvap/kvap/policy"
)

// An exception is a PolicyException, read once.
type exception struct {
	*policy.Exception
	conditions *conditions
}

func readException(e *policy.Exception) *exception {
	return &exception{e, readConditions(e.Conditions, excusing)}
}

// names tells whether an exception is from the rule. Rules for pod controllers go
// by their own names.
func (e *exception) names(p *policy.Policy, r *policy.Rule) bool {
	name := p.Name
	if p.Namespaced() {
		name = p.Namespace + "/" + p.Name
	}
	return slices.ContainsFunc(e.Exceptions, func(ref policy.ExceptionRef) bool {
		return ref.PolicyName == name && wildcard.Any(ref.RuleNames, r.Name)
	})
}

// matchingExceptions are those that the request falls under.
func (r *rule) matchingExceptions(a *preparedRequest, v *vars) []*exception {
	var out []*exception
	for _, e := range r.exceptions {
		if e.matches(a.subject()) && e.conditionsHold(v) {
			out = append(out, e)
		}
	}
	return out
}

// mayBeExcepted tells whether labels of the namespace decide that the request falls under an
// exception, and no other has it do so.
func (r *rule) mayBeExcepted(a *preparedRequest, v *vars) bool {
	if !a.namespaceUnknown() {
		return false
	}
	yes, no, may := true, false, false
	for _, e := range r.exceptions {
		selected, passedOver := a.subject(), a.subject()
		selected.selected, passedOver.selected = &yes, &no
		switch matches := e.matches(selected); {
		case !matches || !e.conditionsHold(v):
		case e.matches(passedOver):
			return false
		default:
			may = true
		}
	}
	return may
}

func (e *exception) matches(s *filterInput) bool {
	if e.Match == nil {
		return false
	}
	matches := func(f *policy.Filter) bool { return filterMatches(f, s, inException) }
	switch {
	case len(e.Match.Any) > 0:
		return slices.ContainsFunc(e.Match.Any, matches)
	case len(e.Match.All) > 0:
		return !slices.ContainsFunc(e.Match.All, func(f *policy.Filter) bool { return !matches(f) })
	}
	return false
}

// conditionsHold looks at all in front of any, unlike other conditions. An
// exception whose conditions err does not apply.
func (e *exception) conditionsHold(v *vars) bool {
	c := e.conditions
	if c == nil {
		return true
	}
	all, _, err := c.allHold(v)
	if err != nil || !all {
		return false
	}
	anyTrue, _, err := c.anyHolds(v)
	return err == nil && anyTrue
}

func skipByExceptions(exceptions []*exception) verdict {
	names := make([]string, len(exceptions))
	for i, e := range exceptions {
		names[i] = e.Namespace + "/" + e.Name
	}
	out := say(Skip, "%s", "rule is skipped due to policy exceptions"+strings.Join(names, ","))
	out.exceptions = names
	return out
}
