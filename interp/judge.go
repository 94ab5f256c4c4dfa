package interp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// A Status is what a rule says of a request.
type Status string

// The statuses. None is that of a rule that does not apply, does not look at the
// operation, or found nothing to check.
const (
	Pass  Status = "pass"
	Fail  Status = "fail"
	Skip  Status = "skip"
	Error Status = "error"
	None  Status = "none"
	// Unknown is that of a rule which labels of a namespace decide that nobody knows
	// (Request.NamespaceUnknown). Those who ask the interpreter without something else that a
	// rule reads put it in the place of its status.
	Unknown Status = "unknown"
)

// A RuleResult is what one rule says of a request.
type RuleResult struct {
	Policy    string
	Namespace string // of a namespaced policy
	// Rule is the name as Kyverno reports it, with autogen- in front for what a
	// rule for pods says of their controllers.
	Rule   string
	Status Status
	// Kyverno is the status that Kyverno gives. It differs from Status where Kyverno errs on
	// a violation because a key that an anchor names is nowhere in the object (deviation 2),
	// on what kvap does not judge (own.go) and, if the request asks for it, where Deviations
	// are.
	Kyverno Status
	// Deviations are the numbers of those for which Kyverno gives another status, of 9 and 13.
	Deviations []int
	Message    string
	// Exceptions are the exceptions that made the rule skip, as namespace/name.
	Exceptions []string
	// Properties are what reports tell of the result besides: the controls of the Pod Security
	// Standards that are violated, and the rule's own reportProperties.
	Properties map[string]string
	// Code is set for what the interpreter does not support.
	Code diag.Code
	// Warnings are what a user should know though the rule admits the object.
	Warnings []string

	awaits []string // images that some policy must verify: Verified.Settle
}

// Limits bound what judging one request may use. A zero field has its default; a
// negative one means no bound.
type Limits struct {
	Context  int // bytes of context entries; 2 MiB
	Response int // bytes of an answer to an apiCall; 2 MiB
	Depth    int // levels of a pattern; 500
	// Registry is the default registry of images: docker.io.
	Registry string
}

const defaultBytes = 2 << 20

func (l Limits) context() int  { return orDefault(l.Context, defaultBytes) }
func (l Limits) response() int { return orDefault(l.Response, defaultBytes) }

func (l Limits) depth() int {
	if l.Depth < 0 {
		return 1 << 30
	}
	return orDefault(l.Depth, 500)
}

func (l Limits) registry() string {
	if l.Registry == "" {
		return "docker.io"
	}
	return l.Registry
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// An Interpreter judges requests by a set of policies. It may be used by several
// goroutines at once.
type Interpreter struct {
	policies   []*compiledPolicy
	exceptions []*exception
	// celExceptions are those from policies in CEL.
	celExceptions []*policy.Exception
	world         World
	limits        Limits

	// What policies in CEL are compiled with, made when one is first needed.
	celMu   sync.Mutex
	celSets map[cellib.PolicyKind]*environment.EnvSet
	types   mergeTypes // of the objects that apply configurations are merged into
}

// New makes an interpreter of policies and the exceptions from them. The policies
// must not be changed afterwards.
func New(policies []*policy.Policy, exceptions []*policy.Exception, world World, limits Limits) *Interpreter {
	in := &Interpreter{world: world, limits: limits}
	for _, e := range exceptions {
		switch {
		case e.Invalid:
		case e.CEL != nil:
			in.celExceptions = append(in.celExceptions, e)
		default:
			in.exceptions = append(in.exceptions, readException(e))
		}
	}
	for _, p := range policies {
		tooLarge := sync.OnceValue(func() error { return budget.CheckSource(p) })
		read := &compiledPolicy{Policy: p, conditions: readMatchConditions(p, tooLarge), tooLarge: tooLarge, cel: map[*policy.Rule]*celRule{}}
		for _, r := range p.Rules {
			if r.Validate != nil && r.Validate.CEL != nil {
				read.cel[r] = readCEL(r.Validate, r.CELPreconditions, tooLarge)
			}
		}
		if p.Validating != nil {
			read.forms = validatingFormsOf(p, tooLarge)
		}
		if p.Mutating != nil {
			read.changing = mutatingFormsOf(p, tooLarge)
		}
		if p.Generating != nil {
			read.making = generatingOf(p, tooLarge)
		}
		in.policies = append(in.policies, read)
	}
	return in
}

// A compiledPolicy is a policy with its rules by the kind they are judged for.
type compiledPolicy struct {
	*policy.Policy
	conditions *matchConditions
	forms      []*validatingForm // of a ValidatingPolicy
	changing   []*mutatingForm   // of a MutatingPolicy
	making     *generating       // a GeneratingPolicy; nil for others
	// tooLarge is why nothing of it in CEL is compiled; nil where all may be.
	tooLarge func() error
	cel      map[*policy.Rule]*celRule // of rules as written

	mu    sync.Mutex
	rules map[string][]*rule

	mutateOnce  sync.Once
	mutateRules []*mutateRule

	existingOnce  sync.Once
	existingRules []*existingRule

	generateOnce  sync.Once
	generateRules []*generateRule
}

// maxKinds bounds how many kinds' rules are kept; requests choose the kinds.
const maxKinds = 256

// rulesFor are the rules that Kyverno evaluates for a kind.
func (c *compiledPolicy) rulesFor(in *Interpreter, kind string) []*rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rules, ok := c.rules[kind]; ok {
		return rules
	}
	var rules []*rule
	for _, r := range c.Policy.RulesFor(kind) {
		rules = append(rules, in.readRule(c.Policy, r))
		if r.Validate != nil && r.Validate.CEL != nil {
			one := c.cel[r]
			if one == nil { // for a controller of pods
				one = readCEL(r.Validate, r.CELPreconditions, c.tooLarge)
			}
			rules[len(rules)-1].cel = one
		}
	}
	if len(c.rules) >= maxKinds || c.rules == nil {
		c.rules = map[string][]*rule{}
	}
	c.rules[kind] = rules
	return rules
}

// Judge gives the result of every rule, in the order of the policies and of
// their rules. Judging one request never changes what comes out for another.
func (in *Interpreter) Judge(ctx context.Context, req *Request) []RuleResult {
	a := newReview(ctx, req, in.world, in.limits)
	var out []RuleResult
	for _, p := range in.policies {
		switch {
		case p.Validating != nil:
			out = append(out, in.judgeValidating(a, p)...)
		case !p.InCEL() && !req.Document: // the others say nothing of a request
			out = append(out, in.judgePolicy(a, p)...)
		}
	}
	if req.Verified == nil {
		a.verified.Settle(out)
	}
	return out
}

func (in *Interpreter) judgePolicy(a *preparedRequest, p *compiledPolicy) []RuleResult {
	rules := p.rulesFor(in, a.kind.kind)
	out := make([]RuleResult, len(rules))
	open, err := p.gate(a)
	done, seen := false, false // of rules, and of those about images
	for i, r := range rules {
		out[i] = RuleResult{Policy: p.Name, Rule: r.Name, Status: None, Kyverno: None}
		if p.Namespaced() {
			out[i].Namespace = p.Namespace
		}
		if err != nil && ruleApplies(p.Policy, r.Rule, a.subject()) {
			out[i].Status, out[i].Kyverno, out[i].Message = Error, Error, err.Error()
		}
		if !open || seen || done && r.VerifyImages == nil {
			continue
		}
		verdict, deviations := r.judgeBoth(a)
		if verdict.status != None && a.spares(r.Rule) {
			verdict = verdictOfKyverno(verdict.kyverno)
		}
		out[i].Status, out[i].Kyverno, out[i].Message = verdict.status, verdict.kyverno, verdict.message
		out[i].Exceptions, out[i].Properties = verdict.exceptions, verdict.properties
		out[i].Code, out[i].Deviations, out[i].Warnings = verdict.code, deviations, verdict.warnings
		if p.ApplyOne && (verdict.kyverno == Pass || verdict.kyverno == Fail) {
			// Kyverno verifies images before it validates, and counts there anew.
			done, seen = true, r.VerifyImages != nil
		}
	}
	return out
}

// gate tells whether a policy has anything to say of a request.
func (c *compiledPolicy) gate(a *preparedRequest) (open bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			open, err = false, fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	if !c.Admission && !a.request.Scan {
		return false, nil
	}
	if c.Namespaced() {
		for _, object := range []map[string]any{a.object, a.old} {
			if object != nil && metaText(object, "namespace") != c.Namespace {
				return false, nil
			}
		}
	}
	return c.conditions.hold(a)
}

// A verdict is what a rule, or a part of it, says. The zero verdict is none.
type verdict struct {
	status, kyverno Status
	message         string
	exceptions      []string
	properties      map[string]string
	code            diag.Code
	warnings        []string
	idle            bool // a mutate rule has nothing to change
}

func say(status Status, format string, args ...any) verdict {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return verdict{status: status, kyverno: status, message: format}
}

// verdictOfKyverno is that of a rule which Kyverno alone judges by.
func verdictOfKyverno(status Status) verdict { return verdict{status: None, kyverno: status} }

func none() verdict { return verdict{status: None, kyverno: None} }

// errPanic is what a rule errs with when judging it crashed.
var errPanic = errors.New("judging failed unexpectedly")

// givenUp is an error where nobody waits for what is judged any more.
func givenUp(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the request was given up: %w", err)
	}
	return nil
}

// judge says what a rule makes of a request. Whatever goes wrong in it stays in
// it.
func (r *rule) judge(a *preparedRequest) (out verdict) {
	defer func() {
		if p := recover(); p != nil {
			out = say(Error, "%v: %v", errPanic, p)
		}
	}()
	if err := givenUp(a.ctx); err != nil {
		return say(Error, "%v", err)
	}
	if r.Invalid {
		return say(Error, "the rule has errors; see what reading the policy reported")
	}
	if a.deletes() && r.needsObject() {
		observe(a.ctx, Observation{Rule: r.Name})
		return none()
	}
	applicable := ruleApplies(r.policy, r.Rule, a.subject())
	observe(a.ctx, Observation{Rule: r.Name, Holds: applicable, Err: a.labelsErr})
	switch {
	case a.namespaceUnknown() && mayApply(r.policy, r.Rule, a.subject()):
		return unknownNamespace()
	case a.labelsErr != nil:
		return say(Error, "%v", a.labelsErr)
	case !applicable:
		return none()
	}
	if r.VerifyImages != nil && !a.looksAtImages() {
		return none()
	}
	if r.VerifyImages == nil && r.Validate == nil || r.Validate != nil && r.Validate.Manifests != nil && a.deletes() {
		return none()
	}
	v := newVars(a)
	v.defineImages(a, r)
	v.defineAll(r.entries, a)
	applies, message, err := r.preconditions.holds(v)
	switch {
	case err != nil && r.VerifyImages != nil && len(r.matchingExceptions(a, v)) == 0 && v.malformedImage(r.Rule, a.object) != nil:
		return say(Fail, "failed to verify images: %v", v.malformedImage(r.Rule, a.object))
	case err != nil:
		return say(Error, "failed to evaluate preconditions: %v", err)
	case !applies:
		return say(Skip, "%s", joinMessages("preconditions not met", message))
	}
	return r.handle(a, v).with(r.reported(v))
}

// needsObject tells whether a rule has nothing to check where no object is left.
// Such a rule does not match DELETE; Kyverno's can still err there, and so keep
// an object from being deleted (deviation 12).
func (r *rule) needsObject() bool {
	v := r.Validate
	return v != nil && v.Deny == nil && (v.Pattern != nil || v.AnyPattern != nil || v.PodSecurity != nil)
}

// subject is what match and exclude are held to: the new object, or on DELETE
// the old.
func (a *preparedRequest) subject() *filterInput {
	s := &filterInput{
		object: a.object, kind: a.kind, operation: a.operation, user: a.user, namespaceLabels: a.namespaceLabels,
	}
	if s.object == nil {
		s.object = a.old
	}
	return s
}

// deletes tells whether the request takes the object away.
func (a *preparedRequest) deletes() bool {
	return a.operation == "DELETE" || a.operation == "" && a.object == nil
}

// handle judges by the body of a rule that applies.
func (r *rule) handle(a *preparedRequest, v *vars) verdict {
	if r.mayBeExcepted(a, v) {
		return unknownNamespace()
	}
	excepted := r.matchingExceptions(a, v)
	if r.VerifyImages != nil {
		if len(excepted) > 0 {
			return skipByExceptions(excepted)
		}
		return r.verifyImages(a, v)
	}
	body := r.Validate
	if body.PodSecurity != nil && body.Manifests == nil {
		return r.judgePodSecurity(a, excepted)
	}
	if len(excepted) > 0 {
		return skipByExceptions(excepted)
	}
	switch {
	case body.Manifests != nil:
		return unsupported("verifying the signature of manifests is not supported")
	case r.cel != nil:
		return r.cel.judge(a, r)
	}
	val := &validation{rule: r, review: a, vars: v, object: a.object, at: []string{}, deletes: a.deletes()}
	return val.withExisting(r.check)
}

func unsupported(message string) verdict {
	v := say(Error, "%s", message)
	v.code = Unsupported
	return v
}
