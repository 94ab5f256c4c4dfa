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

// start has the work kept that an admitted request starts, before it is answered.
// What cannot be kept is an error of its rule, which blocks where the policy must not
// fail.
func (s *Server) start(ctx context.Context, policies []*servedPolicy, r *review, req *interp.Request) []ruleFailure {
	if s.options.Start == nil || r.dryRun {
		return nil
	}
	var out []ruleFailure
	for _, p := range policies {
		if p.Shadow {
			s.rehearseStart(ctx, p, r, req)
			continue
		}
		for _, t := range p.engine.GenerateTriggers(ctx, req) {
			var err error
			switch {
			case t.Status == interp.Error:
				out = append(out, ruleFailure{servedPolicy: p, rule: t.Rule, status: t.Status, message: t.Message, action: policy.Audit})
			case t.Action != "" && !s.isOwn(p, t.Rule, r):
				err = s.options.Start(ctx, Start{Policy: p.Policy.Policy, Rule: t.Rule, Remove: t.Action == interp.DeleteTargets, Object: t.Trigger, Request: req})
			}
			if err != nil {
				out = append(out, p.lost(t.Rule, err))
			}
		}
		out = append(out, s.startChanges(ctx, p, r, req)...)
	}
	return out
}

// rehearseStart records what a policy in shadow would start.
func (s *Server) rehearseStart(ctx context.Context, p *servedPolicy, r *review, req *interp.Request) {
	note := func(rule string, status interp.Status, message string) {
		if status != interp.None && !s.isOwn(p, rule, r) {
			s.options.Record(ruleFailure{servedPolicy: p, rule: rule, status: status, message: message, action: policy.Audit}.record(r))
		}
	}
	for _, t := range p.engine.GenerateTriggers(ctx, req) {
		switch {
		case t.Status != interp.Error && t.Action != "":
			note(t.Rule, interp.Pass, t.Message)
		case t.Status == interp.Fail: // with nothing to remove
			note(t.Rule, interp.Skip, t.Message)
		default:
			note(t.Rule, t.Status, t.Message)
		}
	}
	for _, t := range p.engine.Triggered(ctx, req) {
		note(t.Rule, t.Status, t.Message)
	}
}

// startChanges has the work kept of rules that change objects that are there.
func (s *Server) startChanges(ctx context.Context, p *servedPolicy, r *review, req *interp.Request) []ruleFailure {
	var out []ruleFailure
	object := r.object
	if object == nil {
		object = r.old
	}
	for _, t := range p.engine.Triggered(ctx, req) {
		switch {
		case t.Status == interp.Error:
			out = append(out, ruleFailure{servedPolicy: p, rule: t.Rule, status: t.Status, message: t.Message, action: policy.Audit})
		case t.Status == interp.Pass && !s.isOwn(p, t.Rule, r):
			if err := s.options.Start(ctx, Start{Policy: p.Policy.Policy, Rule: t.Rule, Changes: true, Object: object, Request: req}); err != nil {
				out = append(out, p.lost(t.Rule, err))
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
