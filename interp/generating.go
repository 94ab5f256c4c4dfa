package interp

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// A generating is a GeneratingPolicy. It is compiled when it is first needed.
type generating struct {
	policy *policy.Policy
	of     *policy.Generating
	// anyway are the constraints without the operations.
	anyway   *policy.MatchConstraints
	tooLarge func() error

	once       sync.Once
	cel        *celPolicy
	exceptions []celException
	conditions []cel.Program
	entries    []generateEntry
	audits     []cel.Program
	err        error
	at         diag.Pos // of the first expression that does not compile
}

// A generateEntry is an entry of generate: a program that calls the generator, or the
// documents of a template.
type generateEntry struct {
	program  cel.Program
	template []*celDocument
}

func generatingOf(p *policy.Policy, tooLarge func() error) *generating {
	g := &generating{policy: p, of: p.Generating, tooLarge: tooLarge}
	if m := p.Generating.MatchConstraints; m != nil {
		all := *m
		all.Rules = slices.Clone(all.Rules)
		for i := range all.Rules {
			all.Rules[i].Operations = []string{"*"}
		}
		g.anyway = &all
	}
	return g
}

func (g *generating) compile(in *Interpreter) {
	if g.err = g.tooLarge(); g.err != nil {
		return
	}
	if g.cel, g.err = in.celPolicy(cellib.PolicyKind{Generating: true, Namespace: g.policy.Namespace}); g.err != nil {
		return
	}
	note := func(at diag.Pos, err error) {
		if err != nil && g.err == nil {
			g.at = at
		}
		g.err = errors.Join(g.err, err)
	}
	compiled := func(one policy.CEL, want *cel.Type) cel.Program {
		program, err := g.cel.compile(one.Expression, want)
		note(one.Pos, err)
		return program
	}
	// Match conditions do not know the variables, other than those of a MutatingPolicy.
	for _, one := range g.of.MatchConditions {
		g.conditions = append(g.conditions, compiled(one, cel.BoolType))
	}
	var err error
	g.exceptions, err = g.cel.exceptions(in.celExceptions, g.policy)
	for _, one := range g.of.Variables {
		note(one.Pos, g.cel.define(one.Name, one.Expression))
	}
	for _, one := range g.of.Entries {
		var entry generateEntry
		if one.Template == nil {
			entry.program = compiled(policy.CEL{Pos: one.Pos, Expression: one.Expression}, cel.BoolType)
		}
		for _, doc := range one.Template {
			read, err := g.cel.document(doc, one.Interpolate)
			note(doc.Pos, err)
			entry.template = append(entry.template, read)
		}
		g.entries = append(g.entries, entry)
	}
	for _, one := range g.of.AuditAnnotations {
		g.audits = append(g.audits, compiled(one, nil))
	}
	note(g.policy.Pos, err)
}

// result is a verdict of the policy.
func (g *generating) result(v verdict) RuleResult {
	out := RuleResult{
		Policy: g.policy.Name, Rule: g.policy.Name, Status: v.status, Kyverno: v.kyverno, Message: v.message, Exceptions: v.exceptions, Code: v.code,
	}
	if g.policy.Namespaced() {
		out.Namespace = g.policy.Namespace
	}
	return out
}

// open tells whether the policy has anything to say of a request, or of an object that is
// there.
func (g *generating) open(a *preparedRequest) bool {
	return (g.policy.Admission || a.operation == "") && (!g.policy.Namespaced() || a.namespace == g.policy.Namespace)
}

// triggered says what a request means to the policy.
func (g *generating) triggered(in *Interpreter, a *preparedRequest) (out GenerateTrigger) {
	defer func() {
		if p := recover(); p != nil {
			out = GenerateTrigger{RuleResult: g.result(say(Error, "%v: %v", errPanic, p))}
		}
	}()
	if !g.open(a) {
		return GenerateTrigger{RuleResult: g.result(none())}
	}
	if a.operation == "" {
		var err error
		if a, err = a.asIf("CREATE"); err != nil {
			return GenerateTrigger{RuleResult: g.result(say(Error, "%v", err))}
		}
	}
	if a.operation == "DELETE" && !g.of.Lists("DELETE") {
		return g.gone(a)
	}
	v, scope := g.begin(in, a, false)
	switch {
	case scope != nil:
		return GenerateTrigger{RuleResult: g.result(v), Action: GenerateTargets, Trigger: a.subjectOfCEL()}
	case g.of.Synchronize && a.operation == "UPDATE" && a.old != nil && (v.kyverno == None):
		if g.stopped(in, a) {
			return GenerateTrigger{RuleResult: g.result(say(Fail, "the object is no longer a trigger")), Action: DeleteTargets, Trigger: a.old}
		}
	}
	return GenerateTrigger{RuleResult: g.result(v)}
}

// gone is what the deletion of an object means to a policy that makes nothing of it.
func (g *generating) gone(a *preparedRequest) GenerateTrigger {
	v := none()
	matches, err := g.matches(a, true)
	switch {
	case err != nil:
		v = say(Error, "%v", err)
	case matches && g.of.Synchronize:
		return GenerateTrigger{RuleResult: g.result(say(Fail, "the object is gone")), Action: DeleteTargets, Trigger: a.old}
	}
	return GenerateTrigger{RuleResult: g.result(v)}
}

// stopped tells that an object which is not a trigger was one before its update. An update is
// none that the policy only does not name.
func (g *generating) stopped(in *Interpreter, a *preparedRequest) bool {
	if _, is := g.begin(in, a, true); is != nil {
		return false
	}
	before := *a
	before.object = a.old
	was, scope := g.begin(in, &before, true)
	return scope != nil || was.status == Error
}

// subjectOfCEL is the object that a request is about: the one that goes, where there is no
// other.
func (a *preparedRequest) subjectOfCEL() map[string]any {
	if a.object == nil || a.deletes() && a.old != nil {
		return a.old
	}
	return a.object
}

// matches tells whether the constraints match, by the object alone that the request is
// about: one that has lost its label is selected no longer.
func (g *generating) matches(a *preparedRequest, anyOperation bool) (bool, error) {
	m := g.of.MatchConstraints
	if anyOperation {
		m = g.anyway
	}
	alone := *a
	alone.object, alone.old = a.subjectOfCEL(), nil
	attributes := a.fullAttributes()
	return constraintsMatch(alone.namesBegun(m, attributes.GetName()), &alone, attributes)
}

// begin looks at all that is in front of the entries of generate. There is a scope for them
// where the object is a trigger; else the verdict says why not. Kyverno says nothing of a
// condition that does not hold.
func (g *generating) begin(in *Interpreter, a *preparedRequest, anyOperation bool) (verdict, celScope) {
	if err := givenUp(a.ctx); err != nil {
		return say(Error, "%v", err), nil
	}
	if g.policy.Invalid {
		return say(Error, "the policy has errors; see what reading it reported"), nil
	}
	matches, err := g.matches(a, anyOperation)
	observe(a.ctx, Observation{Rule: g.policy.Name, Holds: matches, Err: err})
	switch {
	case err != nil:
		return say(Error, "%v", err), nil
	case !matches:
		return none(), nil
	}
	g.once.Do(func() { g.compile(in) })
	if g.err != nil {
		return unsupported(fmt.Sprintf("an expression cannot be read: %v", g.err)), nil
	}
	scope, err := g.scope(a)
	if err != nil {
		return say(Error, "%v", err), nil
	}
	allowed, excepted, err := a.celExcepted(g.exceptions, scope, false)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate policy: failed to evaluate an exception: %v", err), nil
	case excepted != nil:
		return *excepted, nil
	}
	scope["exceptions"] = allowed
	applies, err := scope.all(a.ctx, g.conditions)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate policy: failed to evaluate the match conditions: %v", err), nil
	case !applies:
		return verdict{status: Skip, kyverno: None, message: "match conditions not met"}, nil
	}
	return say(Pass, "the policy is triggered"), scope.with(a.ctx, g.cel)
}

// scope is a request as the expressions of a GeneratingPolicy see it: the object that goes
// is the object.
func (g *generating) scope(a *preparedRequest) (celScope, error) {
	out, err := a.celScope()
	if err != nil {
		return nil, err
	}
	out["object"] = orEmpty(a.subjectOfCEL())
	return out, nil
}

// generate is what the policy wants for the object of a request. Without a request, which
// operations the policy names does not matter: the object was a trigger.
func (g *generating) generate(in *Interpreter, a *preparedRequest, objects ObjectReader) (out *Generation) {
	defer func() {
		if p := recover(); p != nil {
			out = &Generation{RuleResult: g.result(say(Error, "%v: %v", errPanic, p))}
		}
	}()
	if !g.open(a) || a.object == nil && a.old == nil {
		return &Generation{RuleResult: g.result(none())}
	}
	anyOperation := a.operation == ""
	if anyOperation {
		var err error
		if a, err = a.asIf("CREATE"); err != nil {
			return &Generation{RuleResult: g.result(say(Error, "%v", err))}
		}
	}
	v, scope := g.begin(in, a, anyOperation)
	out = &Generation{RuleResult: g.result(v)}
	if scope == nil {
		if v.exceptions != nil { // which may be a pass, and makes nothing
			out.Excepted = true
		}
		return out
	}
	m := &maker{of: g, trigger: a.subjectOfCEL(), review: a, objects: objects, out: out}
	scope["generator"] = cellib.Generator(m.apply)
	if err := m.evaluate(scope); err != nil {
		// What was wanted before the error is made all the same.
		out.RuleResult, out.Errors = g.result(say(Error, "failed to evaluate policy: %v", err)), []error{err}
		return out
	}
	out.RuleResult = g.result(say(Pass, "policy evaluated successfully"))
	return out
}

// evaluate goes through the entries, and then the audit annotations, which are written
// nowhere.
func (m *maker) evaluate(scope celScope) error {
	g, ctx := m.of, m.review.ctx
	for i, entry := range g.entries {
		var err error
		if entry.program != nil {
			_, err = scope.eval(ctx, entry.program)
		} else {
			err = m.template(scope, entry.template)
		}
		if err != nil {
			return fmt.Errorf("generate[%d]: %w", i, err)
		}
	}
	for i, audit := range g.audits {
		out, err := scope.eval(ctx, audit)
		if err == nil && out.Type() != types.StringType {
			err = fmt.Errorf("it is a %s, not a string", out.Type().TypeName())
		}
		if err != nil {
			return fmt.Errorf("auditAnnotation '%s': %w", g.of.AuditAnnotations[i].Name, err)
		}
	}
	return nil
}
