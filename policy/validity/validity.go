package validity

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A Finder finds the resources whose kinds match patterns, as a schema.Set does by Resources.
// Where it finds none, the cluster serves none.
type Finder func(group, version, kind string) []schema.Resource

// Check is what is refused and warned of in a file, beside what reading it has said. A nil
// Finder knows of no kinds, and nothing is said of them.
func Check(ctx context.Context, f *policy.File, kinds Finder) diag.List {
	c := &checker{kinds: kinds, variable: variable(), user: userWords(), early: targetWord()}
	for _, p := range f.Policies {
		c.policy(ctx, p)
	}
	for _, e := range f.Exceptions {
		c.exception(e)
	}
	for _, one := range f.Cleanups {
		c.cleanup(one)
	}
	return c.found.Sort()
}

type checker struct {
	kinds Finder
	found diag.List

	variable, user, early *regexp.Regexp // made once
}

func (c *checker) fail(pos diag.Pos, code diag.Code, format string, args ...any) {
	c.found = append(c.found, diag.Errorf(pos, code, format, args...))
}

func (c *checker) warn(pos diag.Pos, code diag.Code, format string, args ...any) {
	c.found = append(c.found, diag.Warnf(pos, code, format, args...))
}

func (c *checker) policy(ctx context.Context, p *policy.Policy) {
	c.background(p)
	c.admission(p)
	for _, rule := range p.Rules {
		c.rule(p, rule)
	}
	if c.kinds != nil {
		c.found = append(c.found, policy.CheckScopes(p, c.scopeOf)...)
	}
	if v := p.Validating; v != nil && v.Images == nil && v.MatchConstraints != nil && len(v.MatchConstraints.Rules) == 0 && v.Mode != "JSON" {
		c.fail(v.MatchConstraints.Pos, diag.Missing, "matchConstraints needs at least one entry in resourceRules")
	}
	c.compile(ctx, p)
}

// admission refuses what has nothing to do outside of admission, where that is switched off.
func (c *checker) admission(p *policy.Policy) {
	if m := p.Mutating; m != nil && m.AdmissionOff && !m.Existing {
		c.fail(m.Pos, diag.NeedsAdmission, "the policy is switched off: set evaluation.admission.enabled or evaluation.mutateExisting.enabled to true")
	}
	if p.Admission {
		return
	}
	for _, rule := range p.Rules {
		if kind := rule.Type(); kind != "" && kind != "validate" {
			c.fail(rule.Pos, diag.NeedsAdmission, "a rule with %s works at admission only, and the policy has admission: false; set it to true", kind)
		}
	}
}

func (c *checker) rule(p *policy.Policy, rule *policy.Rule) {
	if m := rule.Mutate; m != nil && len(m.Targets) == 0 && (p.MutateExisting || m.OnPolicyUpdate != nil && *m.OnPolicyUpdate) {
		c.fail(m.Pos, diag.Missing, "mutateExistingOnPolicyUpdate changes objects that are there, and no targets say which; add mutate.targets, or set it to false")
	}
	c.variables(rule)
	c.anyKind(p, rule)
	c.scopes(p.Namespaced(), rule.Match, rule.Exclude)
	c.nulls(rule.Source.Get("preconditions"), strings.HasSuffix(p.APIVersion, "/v2beta1"))
	for _, one := range conditionsOf(rule) {
		c.operator(one)
	}
}

func (c *checker) exception(e *policy.Exception) {
	if e.Background {
		c.userInfo(e.Match, "an exception")
	}
	c.operators(e.Conditions)
}

func (c *checker) cleanup(one *policy.Cleanup) {
	if one.Schedule.Value != "" {
		next := interp.NextRun
		if one.Deleting != nil {
			next = interp.NextDeletion
		}
		_, err := next(one.Schedule.Value, anyTime())
		switch never := new(interp.NeverDueError); {
		case errors.As(err, never):
			c.warn(one.Schedule.Pos, diag.BadSchedule, "%v, so nothing is deleted; write a time that comes, if something is to be", err)
		case err != nil:
			c.fail(one.Schedule.Pos, diag.BadSchedule, "%v; write five fields, as in */5 * * * *, or @hourly", err)
		}
	}
	c.scopes(one.Kind == "CleanupPolicy", one.Match, one.Exclude)
	c.operators(one.Conditions)
	if one.Deleting != nil && budget.CheckDeleting(one.Deleting) != nil {
		return
	}
	if at, err := interp.NewCleanup(one, nil, &interp.Offline{}, interp.Limits{}).BrokenAt(); err != nil {
		c.broken(at, err)
	}
}

// compile refuses CEL that does not compile in Kyverno's environment. Of rules it tells of the
// first. What costs too much to compile is not compiled: the compiler tells of it.
func (c *checker) compile(ctx context.Context, p *policy.Policy) {
	one := p
	if !p.InCEL() {
		copied := *p
		copied.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(rule *policy.Rule) bool {
			return rule.Invalid || rule.Validate == nil || rule.Validate.CEL == nil
		})
		one = &copied
	}
	if !p.InCEL() && len(one.Rules) == 0 || p.Invalid || budget.CheckSource(one) != nil {
		return
	}
	if p.Generating != nil {
		if at, err := interp.BrokenAt(p, &interp.Offline{}); err != nil {
			c.broken(at, err)
		}
		return
	}
	err := interp.New([]*policy.Policy{one}, nil, &interp.Offline{}, interp.Limits{}).Broken(ctx)
	if err != nil && ctx.Err() == nil { // else nobody waits for it any more
		c.broken(placeOf(one, err), err)
	}
}

// placeOf is where an error of a policy's CEL is: in the rule that it names.
func placeOf(p *policy.Policy, err error) diag.Pos {
	for _, rule := range p.Rules {
		if strings.HasPrefix(err.Error(), "rule "+rule.Name+": ") {
			return rule.Validate.CEL.Pos
		}
	}
	if spec := p.Source.Get("spec"); spec != nil {
		return spec.Pos
	}
	return p.Pos
}

func (c *checker) broken(at diag.Pos, err error) {
	c.fail(at, diag.BadExpression, "this does not compile: %s", FirstIssue(err))
}

// FirstIssue is the first thing that CEL's compiler says, without its drawing.
func FirstIssue(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if _, issue, ok := strings.Cut(text, "ERROR: "); ok {
		if _, said, ok := strings.Cut(issue, ": "); ok { // behind its place
			text = said
		}
	}
	return strings.TrimSuffix(text, " (in container '')")
}

// Said leaves out what has been said before of the same place with the same code.
func Said(found, before diag.List) diag.List {
	return slices.DeleteFunc(found, func(d diag.Diagnostic) bool {
		return slices.ContainsFunc(before, func(b diag.Diagnostic) bool {
			return b.Code == d.Code && b.Severity <= d.Severity && (b.Pos == d.Pos || d.Code == diag.BadExpression && strings.HasPrefix(b.Path, d.Path))
		})
	})
}
