package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// mutate lets each policy of a route change the object, in the order of their
// names, each with what the ones before made of it. A policy that errs changes
// nothing; if it must not fail, the request is refused.
func (s *Server) mutate(ctx context.Context, policies []*servedPolicy, r *review, req *interp.Request) (*admissionv1.AdmissionResponse, error) {
	out := &admissionv1.AdmissionResponse{Allowed: true}
	if r.object == nil {
		return out, nil
	}
	var patch []interp.PatchOperation
	var found []ruleFailure
	asked := r.object
	goOn := func(m *interp.MutationResult) { // with what it makes of the object
		if !m.Changed() {
			return
		}
		patch = append(patch, m.Patch()...)
		r = r.with(m.After)
		next := *req
		next.Admission, next.Asked = r.request, asked
		req = &next
	}
	for _, p := range policies {
		mutation := p.engine.Mutate(p.within(ctx, req))
		for _, rule := range mutation.Rules {
			s.count(p, rule.Status)
		}
		found = append(found, errorsOf(p, mutation)...)
		if p.Shadow {
			s.rehearseMutation(ctx, p, r, req, mutation)
		} else {
			s.mutated(p, r, mutation)
		}
		out.Warnings = append(out.Warnings, warningsOf(p, mutation)...)
		if !p.Shadow {
			goOn(mutation)
		}
	}
	// Images are pinned when nothing changes them any more.
	for _, p := range policies {
		pins, err := s.pins(ctx, p, r, req)
		if err != nil {
			return nil, err
		}
		found = append(found, errorsOfPins(p, pins)...)
		goOn(pins)
	}
	for _, f := range found {
		s.options.Record(f.record(r))
	}
	if message := refusal(found); message != "" {
		out.Allowed, out.Warnings = false, nil
		out.Result = &metav1.Status{Status: metav1.StatusFailure, Code: 400, Reason: metav1.StatusReasonBadRequest, Message: message}
		out.AuditAnnotations = annotations(found)
		return out, nil
	}
	out.AuditAnnotations = annotations(found)
	if len(patch) == 0 {
		return out, nil
	}
	data, err := encodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("writing the patch: %w", err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	out.Patch, out.PatchType = data, &kind
	return out, nil
}

// pins are the digests that a policy puts in the place of tags. One in shadow, or with rules that
// only audit, changes nothing; an ImageValidatingPolicy does so whatever its actions are.
func (s *Server) pins(ctx context.Context, p *servedPolicy, r *review, req *interp.Request) (*interp.MutationResult, error) {
	nothing := &interp.MutationResult{}
	if p.Shadow {
		return nothing, nil
	}
	if p.ImagePolicy() != nil {
		return p.engine.PinImages(p.within(ctx, req)), nil
	}
	for name, rule := range p.rules {
		if !rule.PinsImages() {
			continue
		}
		action, err := s.actionOf(ctx, p, name, r)
		if err != nil {
			return nil, err
		}
		if action == policy.Enforce {
			return p.engine.PinImages(p.within(ctx, req)), nil
		}
	}
	return nothing, nil
}

// mutated records the rules of a policy that did what they should.
func (s *Server) mutated(p *servedPolicy, r *review, m *interp.MutationResult) {
	for _, rule := range m.Rules {
		if rule.Status != interp.Error {
			s.judged(r, ruleFailure{servedPolicy: p, rule: rule.Rule, status: rule.Status, mutates: true, exceptions: rule.Exceptions})
		}
	}
}

// changesAgain is what is recorded of a rule in shadow that would change what it has
// changed already.
const changesAgain = "applied to what it made, it changes the object again"

// rehearseMutation records what a policy in shadow would change, and whether it would do
// so again: on the way from Kyverno both sides change objects for a while.
func (s *Server) rehearseMutation(ctx context.Context, p *servedPolicy, r *review, req *interp.Request, first *interp.MutationResult) {
	again := map[string]bool{}
	if first.Changed() {
		next := *req
		next.Admission = r.with(first.After).request
		for _, rule := range p.engine.Mutate(p.within(ctx, &next)).Rules {
			again[rule.Rule] = rule.Status == interp.Pass && len(rule.Patch()) > 0
		}
	}
	for _, rule := range first.Rules {
		switch {
		case rule.Status == interp.Error: // recorded as all errors are
		case again[rule.Rule]:
			s.options.Record(ruleFailure{servedPolicy: p, rule: rule.Rule, status: interp.Fail, message: changesAgain, action: policy.Audit}.record(r))
		default:
			s.judged(r, ruleFailure{servedPolicy: p, rule: rule.Rule, status: rule.Status, mutates: true})
		}
	}
}

// errorsOf are the rules of a policy that could not do what they should.
func errorsOf(p *servedPolicy, m *interp.MutationResult) []ruleFailure {
	var out []ruleFailure
	for _, r := range m.Rules {
		if r.Status == interp.Error {
			out = append(out, ruleFailure{
				servedPolicy: p, rule: r.Rule, status: r.Status, message: r.Message, action: policy.Enforce, mutates: true,
				blocks: !p.Shadow && p.FailurePolicy == policy.Fail,
			})
		}
	}
	return out
}

// errorsOfPins are errorsOf where digests are put in the place of tags. An ImageValidatingPolicy
// that denies does so whatever its failurePolicy says.
func errorsOfPins(p *servedPolicy, m *interp.MutationResult) []ruleFailure {
	out := errorsOf(p, m)
	for i := range out {
		if p.ImagePolicy() == nil {
			continue
		}
		out[i].blocks = !p.Shadow && slices.Contains(p.Validating.Actions, "Deny")
		if !out[i].blocks {
			out[i].action = policy.Audit
		}
	}
	return out
}

// warningsOf are what a policy that warns says of its rules, whatever they did.
func warningsOf(p *servedPolicy, m *interp.MutationResult) []string {
	if p.Shadow || !p.EmitWarning {
		return nil
	}
	var out []string
	for _, r := range m.Rules {
		if r.Status != interp.None && r.Status != interp.Skip && len(out) < maxWarnings {
			out = append(out, fmt.Sprintf("policy %s.%s: %s", p.Name, r.Rule, shorten(r.Message, maxWarning)))
		}
	}
	return out
}

// refusal names the policies and rules that keep a request from being admitted.
func refusal(found []ruleFailure) string {
	var lines []string
	for _, f := range found {
		if f.blocks {
			name := f.nameAmong(found)
			lines = append(lines, fmt.Sprintf("mutation policy %s error: failed to apply policy %s rules [%s: %s]", name, name, f.rule, f.message))
		}
	}
	return strings.Join(lines, "\n")
}

// encodePatch writes a patch. What adds or replaces has a value, be it null.
func encodePatch(patch []interp.PatchOperation) ([]byte, error) {
	steps := make([]map[string]any, len(patch))
	for i, p := range patch {
		steps[i] = map[string]any{"op": p.Op, "path": p.Path}
		switch p.Op {
		case "add", "replace", "test":
			steps[i]["value"] = p.Value
		case "move", "copy":
			steps[i]["from"] = p.From
		}
	}
	return json.Marshal(steps)
}
