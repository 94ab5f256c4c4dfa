package webhook

import (
	"context"
	"fmt"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A Start is work that a request starts, beside its answer.
type Start struct {
	Policy *policy.Policy
	Rule   string
	// Changes tells that the rule changes objects that are there, in place of making
	// some.
	Changes bool
	// Remove tells that what the rule has made for the object is to go.
	Remove bool
	// Object is what the work is about: the new object, or the old one where that is a
	// trigger no longer. It must not be changed.
	Object map[string]any
	// Request is what was asked, with what is bound to the user.
	Request *interp.Request
}

// A startingRule is what a rule that starts work says of a request.
type startingRule struct {
	Start
	status  interp.Status
	message string
	starts  bool
}

// starting are the rules of a policy that start work: those that make objects, and those
// that change objects that are there.
func (p *servedPolicy) starting(ctx context.Context, r *review, req *interp.Request) (out []startingRule) {
	for _, t := range p.engine.GenerateTriggers(ctx, req) {
		one := startingRule{Start{Rule: t.Rule, Remove: t.Action == interp.DeleteTargets, Object: t.Trigger}, t.Status, t.Message, t.Status != interp.Error && t.Action != ""}
		switch {
		case one.starts:
			one.status = interp.Pass
		case t.Status == interp.Fail: // with nothing to remove
			one.status = interp.Skip
		}
		out = append(out, one)
	}
	for _, t := range p.engine.Triggered(ctx, req) {
		out = append(out, startingRule{Start{Rule: t.Rule, Changes: true, Object: r.subject().Object}, t.Status, t.Message, t.Status == interp.Pass})
	}
	for i := range out {
		out[i].Policy, out[i].Request = p.Policy.Policy, req
	}
	return out
}

// start has the work kept that an admitted request starts, before it is answered. What
// cannot be kept is an error of its rule, which blocks where the policy must not fail. What a
// policy in shadow would start is recorded.
func (s *Server) start(ctx context.Context, policies []*servedPolicy, r *review, req *interp.Request) (out []ruleFailure) {
	if s.options.Start == nil || r.dryRun {
		return nil
	}
	for _, p := range policies {
		for _, one := range p.starting(ctx, r, req) {
			said := ruleFailure{servedPolicy: p, rule: one.Rule, status: one.status, message: one.message, action: policy.Audit}
			switch {
			case !p.Shadow && one.status == interp.Error:
				out = append(out, said)
			case one.status == interp.None, s.isOwn(p, one.Rule, r):
			case p.Shadow:
				s.options.Record(said.record(r))
			case one.starts:
				if err := s.options.Start(ctx, one.Start); err != nil {
					out = append(out, p.lost(one.Rule, err))
				}
			}
		}
	}
	return out
}

// isOwn tells that the request is the program's own, which starts no work unless the
// rule says otherwise: rules would set each other off without end.
func (s *Server) isOwn(p *servedPolicy, rule string, r *review) bool {
	if s.options.User == "" || r.user.Name != s.options.User {
		return false
	}
	switch {
	case p.Generating != nil:
		return p.Generating.SkipBackground
	case p.Mutating != nil:
		return p.Mutating.SkipBackground
	}
	found := p.rules[rule]
	return found == nil || found.SkipBackground
}

// lost is work that could not be kept.
func (p *servedPolicy) lost(rule string, err error) ruleFailure {
	return ruleFailure{
		servedPolicy: p, rule: rule, status: interp.Error, message: fmt.Sprintf("the work that the request starts cannot be kept: %v", err),
		action: policy.Enforce, blocks: p.FailurePolicy == policy.Fail, warns: true,
	}
}
