package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A ruleFailure is a rule's failure or error, and what follows from it.
type ruleFailure struct {
	*servedPolicy
	rule    string
	status  interp.Status
	message string
	action  policy.Action
	blocks  bool
	warns   bool // where the request is admitted

	mutates    bool
	exceptions []string // why it was skipped
}

// validate judges a request by each policy of a route. All are asked, so that a
// denial names all of them. What is admitted starts its work.
func (s *Server) validate(ctx context.Context, policies []*servedPolicy, r *review, req *interp.Request) (*admissionv1.AdmissionResponse, error) {
	var found []ruleFailure
	verdicts := s.judge(ctx, policies, req)
	for i, p := range policies {
		list, err := s.findings(ctx, p, r, verdicts[i])
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	if !slices.ContainsFunc(found, func(f ruleFailure) bool { return f.blocks }) {
		found = append(found, s.start(ctx, policies, r, req)...)
	}
	for _, f := range found {
		s.options.Record(f.record(r))
	}
	out := answer(r, found)
	if out.Allowed {
		out.Warnings = append(out.Warnings, notices(policies, verdicts)...)
		out.Warnings = out.Warnings[:min(len(out.Warnings), maxWarnings)]
	}
	return out, nil
}

// notices are what users should know of rules that admit what they ask for.
func notices(policies []*servedPolicy, verdicts [][]interp.RuleResult) (out []string) {
	for i, p := range policies {
		for _, one := range verdicts[i] {
			for _, text := range one.Warnings {
				if !p.Shadow && (one.Status == interp.Pass || one.Status == interp.Skip) {
					out = append(out, fmt.Sprintf("policy %s.%s: %s", p.Name, one.Rule, shorten(text, maxWarning)))
				}
			}
		}
	}
	return out
}

// judge asks each policy. What one has verified of images counts for the others, but what one in
// shadow has for itself only.
func (s *Server) judge(ctx context.Context, policies []*servedPolicy, req *interp.Request) [][]interp.RuleResult {
	out := make([][]interp.RuleResult, len(policies))
	shared := &interp.Verified{}
	verified := make([]*interp.Verified, len(policies))
	for i, p := range policies {
		verified[i] = shared
		if p.Shadow {
			verified[i] = shared.Beside()
		}
		one := *req
		one.Verified = verified[i]
		out[i] = p.engine.Judge(p.within(ctx, &one))
	}
	for i := range out {
		verified[i].Settle(out[i])
	}
	return out
}

// findings are what one policy has against a request.
func (s *Server) findings(ctx context.Context, p *servedPolicy, r *review, results []interp.RuleResult) ([]ruleFailure, error) {
	var out []ruleFailure
	for _, result := range results {
		s.count(p, result.Status)
		if result.Status != interp.Fail && result.Status != interp.Error {
			s.judged(r, ruleFailure{servedPolicy: p, rule: result.Rule, status: result.Status, exceptions: result.Exceptions})
			continue
		}
		f := ruleFailure{servedPolicy: p, rule: result.Rule, status: result.Status, message: result.Message}
		var err error
		if f.action, err = s.actionOf(ctx, p, result.Rule, r); err != nil {
			return nil, err
		}
		enforced := f.action == policy.Enforce
		f.blocks = !p.Shadow && enforced && (f.status == interp.Fail || p.FailurePolicy == policy.Fail || p.ImagePolicy() != nil)
		f.warns = !p.Shadow && (enforced || p.warnsOfAudit())
		out = append(out, f)
	}
	return out, nil
}

// warnsOfAudit tells whether the user hears of what is only audited.
func (p *servedPolicy) warnsOfAudit() bool {
	if p.Validating != nil {
		return slices.Contains(p.Validating.Actions, "Warn")
	}
	return p.EmitWarning
}

// answer denies if something blocks. The warnings are for those who are admitted.
func answer(r *review, found []ruleFailure) *admissionv1.AdmissionResponse {
	out := &admissionv1.AdmissionResponse{Allowed: true, AuditAnnotations: annotations(found)}
	if slices.ContainsFunc(found, func(f ruleFailure) bool { return f.blocks }) {
		out.Allowed = false
		out.Result = &metav1.Status{Status: metav1.StatusFailure, Code: 400, Reason: metav1.StatusReasonBadRequest, Message: denial(r, found)}
		return out
	}
	for _, f := range found {
		if f.warns && len(out.Warnings) < maxWarnings {
			out.Warnings = append(out.Warnings, fmt.Sprintf("policy %s.%s: %s", f.Name, f.rule, shorten(f.message, maxWarning)))
		}
	}
	return out
}

// What an answer holds at most. The API server cuts warnings further.
const (
	maxWarnings   = 50
	maxWarning    = 1024
	maxAnnotation = 32 << 10
)

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xc0 == 0x80 { // within a character
		most--
	}
	return s[:most] + "…"
}

// A violation is what the audit log says of a finding.
type violation struct {
	Policy  string        `json:"policy"`
	Rule    string        `json:"rule"`
	Status  interp.Status `json:"status"`
	Action  policy.Action `json:"action"`
	Shadow  bool          `json:"shadow,omitempty"`
	Message string        `json:"message"`
}

// violationsKey is where the audit log has the findings, behind the name of the
// webhook and a slash.
const violationsKey = "violations"

// annotations are for the audit log, whatever becomes of the request.
func annotations(found []ruleFailure) map[string]string {
	var list []violation
	size := 0
	for _, f := range found {
		v := violation{f.FullName(), f.rule, f.status, f.action, f.Shadow, shorten(f.message, maxWarning)}
		if size += len(v.Policy) + len(v.Rule) + len(v.Message) + 100; size > maxAnnotation {
			break
		}
		list = append(list, v)
	}
	if len(list) == 0 {
		return nil
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil // text and constants only
	}
	return map[string]string{violationsKey: string(data)}
}

// Requested is what a record says of a request.
type Requested struct {
	UID, Operation, Resource string // Resource as Kind/namespace/name
	Object                   string // its UID, where it has one
	APIVersion, Kind         string // of the object, as Namespace and Name
	Namespace, Name          string
	User                     string
	DryRun                   bool
}

func (r *review) describe() Requested {
	o := r.subject()
	return Requested{
		UID: r.uid, Operation: r.operation, Resource: r.resource(), Object: string(o.GetUID()), User: r.user.Name, DryRun: r.dryRun,
		APIVersion: o.GetAPIVersion(), Kind: r.kind(), Namespace: r.within(), Name: o.GetName(),
	}
}

// A Record tells of what a rule says of a request that it is about, or, with Err, of a request
// that was not judged.
type Record struct {
	Request      Requested
	Of           *policy.Policy // as it was given to Set
	Policy, Rule string
	Status       interp.Status
	Message      string
	Action       policy.Action
	Shadow       bool
	Blocked      bool
	// Mutates tells that the rule changes the object.
	Mutates bool
	// Exceptions are those for which the rule was skipped, as namespace/name.
	Exceptions []string
	Err        error
}

func (f ruleFailure) record(r *review) Record {
	return Record{
		Request: r.describe(), Of: f.Policy.Policy, Policy: f.FullName(), Rule: f.rule, Status: f.status, Message: f.message,
		Action: f.action, Shadow: f.Shadow, Blocked: f.blocks, Mutates: f.mutates, Exceptions: f.exceptions,
	}
}

// judged records what a rule says of a request that it is about, where it finds nothing: so it
// is known how many it has seen.
func (s *Server) judged(r *review, said ruleFailure) {
	if said.status != interp.None {
		s.options.Record(said.record(r))
	}
}

// denial is what the user reads: the resource, and what each policy and rule says,
// as YAML. All that is enforced and did not pass is in it, also what would not have
// blocked by itself.
func denial(r *review, found []ruleFailure) string {
	text, err := yaml.Marshal(byPolicy(found))
	if err != nil {
		text = fmt.Appendf(nil, "%v", byPolicy(found))
	}
	return fmt.Sprintf("\n\nresource %s was blocked due to the following policies \n\n%s", r.resource(), text)
}

// byPolicy are the messages that a denial names, by policy and rule.
func byPolicy(found []ruleFailure) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, f := range found {
		if f.Shadow || f.action != policy.Enforce {
			continue
		}
		name := f.nameAmong(found)
		if out[name] == nil {
			out[name] = map[string]string{}
		}
		out[name][f.rule] = f.message
	}
	return out
}

// nameAmong is the policy's name, with as much in front as tells it from others.
func (f ruleFailure) nameAmong(found []ruleFailure) string {
	shares := func(name func(ruleFailure) string) bool {
		return slices.ContainsFunc(found, func(o ruleFailure) bool { return o.servedPolicy != f.servedPolicy && name(o) == name(f) })
	}
	switch {
	case !shares(func(o ruleFailure) string { return o.Name }):
		return f.Name
	case !shares(func(o ruleFailure) string { return o.FullName() }):
		return f.FullName()
	}
	return f.Kind + " " + f.FullName()
}

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
	for _, t := range p.engine.GenerateTriggers(p.within(ctx, req)) {
		one := startingRule{Start{Rule: t.Rule, Remove: t.Action == interp.DeleteTargets, Object: t.Trigger}, t.Status, t.Message, t.Status != interp.Error && t.Action != ""}
		switch {
		case one.starts:
			one.status = interp.Pass
		case t.Status == interp.Fail: // with nothing to remove
			one.status = interp.Skip
		}
		out = append(out, one)
	}
	for _, t := range p.engine.Triggered(p.within(ctx, req)) {
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
					said.status, said.message = interp.Error, fmt.Sprintf("the work that the request starts cannot be kept: %v", err)
					said.action, said.blocks, said.warns = policy.Enforce, p.FailurePolicy == policy.Fail, true
					out = append(out, said)
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
