package policy

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// Idle reports what exceptions name and the policies do not have. In a cluster such
// an exception may be waiting for its policy; beside the policies that it is meant
// for, it is a spelling mistake, and what should be let through is denied.
func Idle(policies []*Policy, exceptions []*Exception) diag.List {
	byName := map[string]*Policy{}
	var names []string
	for _, p := range policies {
		if !p.InCEL() { // for which there are other exceptions
			byName[p.FullName()] = p
			names = append(names, p.FullName())
		}
	}
	var ds diag.List
	for _, e := range exceptions {
		if e.Invalid {
			continue
		}
		if e.CEL != nil {
			ds = append(ds, e.idle(policies)...)
		}
		for _, ref := range e.Exceptions {
			if p := byName[ref.PolicyName]; p == nil {
				ds = append(ds, ref.noPolicy(e, names))
			} else if d := ref.noRule(e, p); d != nil {
				ds = append(ds, *d)
			}
		}
	}
	return ds
}

// Excepted notes which exceptions are from policies that are there: an exception that does
// what it says is not passed over either.
func Excepted(policies []*Policy, exceptions []*Exception) (ds diag.List) {
	for _, e := range exceptions {
		var names []string
		for _, p := range policies {
			if !e.Invalid && e.IsFrom(p) && (e.CEL != nil) == p.InCEL() {
				names = append(names, p.FullName())
			}
		}
		if len(names) > 0 {
			ds = append(ds, diag.Notef(e.Pos, diag.Excepted, "the exception %s is from %s; it is part of what is made of that", e.Name, strings.Join(names, ", ")))
		}
	}
	return ds
}

// idle reports the policies of kinds that are read which an exception in CEL names and
// which are not there.
func (e *Exception) idle(policies []*Policy) (ds diag.List) {
	for _, ref := range e.CEL.Refs {
		named := func(p *Policy) bool { return p.Kind == ref.Kind && p.Name == ref.Name }
		if readVersions("policies.kyverno.io", ref.Kind) == nil || slices.ContainsFunc(policies, named) {
			continue
		}
		ds = append(ds, diag.Warnf(ref.Pos, diag.IdleException,
			"the exception %s is from the %s %q, which is not among the input, so it changes nothing; give the policy too, or correct the name", e.Name, ref.Kind, ref.Name))
	}
	return ds
}

// FullName is how an exception names the policy: with its namespace, if it has one.
func (p *Policy) FullName() string {
	return strings.TrimPrefix(p.Within()+"/"+p.Name, "/")
}

// Within is the namespace that the policy is about; empty for one of the whole cluster.
func (p *Policy) Within() string {
	if p.Namespaced() {
		return p.Namespace
	}
	return ""
}

func (ref ExceptionRef) covers(rule string) bool {
	return slices.ContainsFunc(ref.RuleNames, func(pattern string) bool { return Wildcard(pattern, rule) })
}

func (ref ExceptionRef) noPolicy(e *Exception, names []string) diag.Diagnostic {
	hint := "give the policy too, or correct the name"
	if guess := diag.Nearest(ref.PolicyName, names); guess != "" {
		hint = "did you mean " + guess + "?"
	} else if i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "/"+ref.PolicyName) }); i >= 0 {
		hint = "a namespaced policy is named with its namespace: " + names[i]
	}
	return diag.Warnf(ref.Pos, diag.IdleException, "the exception %s is from the policy %q, which is not among the input, so it changes nothing; %s",
		e.Name, ref.PolicyName, hint)
}

func (ref ExceptionRef) noRule(e *Exception, p *Policy) *diag.Diagnostic {
	if p.Invalid || slices.ContainsFunc(Expand(p), func(r *Rule) bool { return ref.covers(r.Name) }) {
		return nil
	}
	d := diag.Warnf(ref.Pos, diag.IdleException, "the exception %s is from the rules %s of %s, which has none of these, so it changes nothing; correct ruleNames",
		e.Name, strings.Join(ref.RuleNames, ", "), p.FullName())
	return &d
}
