package interp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// A mutatingForm is a form of a MutatingPolicy. It is compiled when it is first needed.
type mutatingForm struct {
	celForm

	once       sync.Once
	cel        *celPolicy
	exceptions []celException
	conditions []cel.Program
	mutations  []cel.Program
	audits     []cel.Program
	err        error
	// Of a policy that changes existing objects: which, and on which conditions.
	targets          cel.Program // nil where no expression finds them
	targetConditions []cel.Program
}

// mutatingFormsOf are the forms of a MutatingPolicy.
func mutatingFormsOf(p *policy.Policy, tooLarge func() error) (out []*mutatingForm) {
	for _, f := range celFormsOf(p, p.Mutating.Autogen, objectInTemplate, tooLarge) {
		out = append(out, &mutatingForm{celForm: f})
	}
	return out
}

// mutateInCEL lets the forms of a MutatingPolicy change the object. One that changes other
// objects does nothing at admission.
func (in *Interpreter) mutateInCEL(a *preparedRequest, p *compiledPolicy) []RuleMutation {
	out := make([]RuleMutation, len(p.changing))
	open := p.Admission && !p.Mutating.ChangesOthers() && (!p.Namespaced() || a.namespace == p.Namespace)
	for i, f := range p.changing {
		m := RuleMutation{Before: a.object, After: a.object}
		m.Policy, m.Rule, m.Status, m.Kyverno = p.Name, f.name, None, None
		if p.Namespaced() {
			m.Namespace = p.Namespace
		}
		if open {
			verdict, after := f.run(in, a)
			m.Status, m.Kyverno, m.Message = verdict.status, verdict.kyverno, verdict.message
			m.Exceptions, m.Code = verdict.exceptions, verdict.code
			if verdict.status == Pass {
				m.After = after
				a.setObject(after)
			}
		}
		out[i] = m
	}
	return out
}

// run says what a form makes of a request. Whatever goes wrong stays in it. Nothing is
// mutated that goes away: there Kyverno errs.
func (f *mutatingForm) run(in *Interpreter, a *preparedRequest) (out verdict, after map[string]any) {
	defer func() {
		if p := recover(); p != nil {
			out, after = say(Error, "%v: %v", errPanic, p), nil
		}
	}()
	if err := givenUp(a.ctx); err != nil {
		return say(Error, "%v", err), nil
	}
	if a.deletes() {
		return none(), nil
	}
	if f.policy.Invalid {
		return say(Error, "the policy has errors; see what reading it reported"), nil
	}
	matches, err := f.matches(a)
	observe(a.ctx, Observation{Rule: f.name, Holds: matches, Err: err})
	switch {
	case mayMatch(f.constraints, a, a.fullAttributes()):
		return unknownNamespace(), nil
	case err != nil:
		return say(Error, "%v", err), nil
	case !matches:
		return none(), nil
	}
	f.once.Do(func() { f.compile(in) })
	if f.err != nil {
		return unsupported(fmt.Sprintf("an expression cannot be read: %v", f.err)), nil
	}
	return f.evaluate(in, a)
}

// matches tells whether the constraints match.
func (f *mutatingForm) matches(a *preparedRequest) (bool, error) {
	attributes := a.fullAttributes()
	return constraintsMatch(a.namesBegun(f.constraints, attributes.GetName()), a, attributes)
}

// namesBegun are constraints in which a name that is yet to be generated is one of
// resourceNames that it begins with.
func (a *preparedRequest) namesBegun(m *policy.MatchConstraints, name string) *policy.MatchConstraints {
	prefix := metaText(a.object, "generateName")
	if m == nil || name != "" || prefix == "" {
		return m
	}
	begun := *m
	begun.Rules = slices.Clone(m.Rules)
	for i, r := range begun.Rules {
		if slices.ContainsFunc(r.Names, func(name string) bool { return strings.HasPrefix(prefix, name) }) {
			begun.Rules[i].Names = nil
		}
	}
	return &begun
}

// compile compiles the expressions. Match conditions know the variables, other than those
// of a ValidatingPolicy. Of the forms for controllers, only match conditions and apply
// configurations are about the template.
func (f *mutatingForm) compile(in *Interpreter) {
	if f.err = f.tooLarge(); f.err != nil {
		return
	}
	if f.cel, f.err = in.celPolicy(cellib.PolicyKind{Mutating: true, Namespace: f.policy.Namespace}); f.err != nil {
		return
	}
	compiled := func(expression string, want *cel.Type) cel.Program {
		program, err := f.cel.compile(expression, want)
		f.err = errors.Join(f.err, err)
		return program
	}
	var err error
	m := f.policy.Mutating
	for _, one := range m.Variables {
		f.err = errors.Join(f.err, f.cel.define(one.Name, one.Expression))
	}
	for _, c := range m.MatchConditions {
		f.conditions = append(f.conditions, compiled(f.rewrite(c.Expression), cel.BoolType))
	}
	f.exceptions, err = f.cel.exceptions(in.celExceptions, f.policy)
	f.err = errors.Join(f.err, err)
	for _, one := range m.Mutations {
		if one.PatchType == policy.ApplyConfiguration {
			f.mutations = append(f.mutations, compiled(f.rewrite(one.Expression), applyType()))
		} else {
			f.mutations = append(f.mutations, compiled(one.Expression, cel.ListType(jsonPatchType())))
		}
	}
	for _, one := range m.AuditAnnotations {
		f.audits = append(f.audits, compiled(one.Expression, nil))
	}
	if m.TargetExpression != "" {
		f.targets = compiled(m.TargetExpression, cel.MapType(cel.StringType, cel.DynType))
	}
	for _, one := range m.TargetConditions {
		f.targetConditions = append(f.targetConditions, compiled(one.Expression, cel.BoolType))
	}
}

// evaluate goes through the exceptions, the match conditions and the mutations. Each
// mutation sees what the ones before made of the object; a variable keeps the value that it
// had when it was first asked for.
func (f *mutatingForm) evaluate(in *Interpreter, a *preparedRequest) (verdict, map[string]any) {
	scope, err := a.mutatingScope()
	if err != nil {
		return say(Error, "%v", err), nil
	}
	allowed, excepted, err := a.celExcepted(f.exceptions, scope, false)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate policy: failed to evaluate an exception: %v", err), nil
	case excepted != nil:
		return *excepted, a.object
	}
	scope["exceptions"] = allowed
	scope = scope.with(a.ctx, f.cel)
	applies, err := scope.all(a.ctx, f.conditions)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate policy: failed to evaluate the match conditions: %v", err), nil
	case !applies:
		return say(Skip, "skip"), nil
	}
	return f.change(in, a, scope, a.object)
}

// change is an object behind all mutations, and the audit annotations.
func (f *mutatingForm) change(in *Interpreter, a *preparedRequest, scope celScope, now map[string]any) (verdict, map[string]any) {
	var err error
	for i, one := range f.policy.Mutating.Mutations {
		now, err = f.patch(in, a, scope, one, f.mutations[i], now)
		if err != nil {
			return say(Error, "failed to evaluate policy: mutation %d: %v", i, err), nil
		}
		scope["object"] = now
	}
	for i, audit := range f.audits {
		if err := f.audit(a, scope, audit); err != nil {
			return say(Error, "failed to evaluate policy: auditAnnotation '%s': %v", f.policy.Mutating.AuditAnnotations[i].Name, err), nil
		}
	}
	return say(Pass, "success"), now
}

// audit evaluates an audit annotation, which is written nowhere: one that errs is an
// error of the policy.
func (f *mutatingForm) audit(a *preparedRequest, scope celScope, audit cel.Program) error {
	out, err := scope.eval(a.ctx, audit)
	if err == nil && out.Type() != types.StringType {
		err = fmt.Errorf("it is a %s, not a string", out.Type().TypeName())
	}
	return err
}

// mutatingScope is the request as the expressions of a MutatingPolicy see it. In the
// request too, an object that is not there is an empty one, and what policies have changed
// is as it was.
func (a *preparedRequest) mutatingScope() (celScope, error) {
	out, err := a.celScope()
	if err != nil {
		return nil, err
	}
	if request, ok := out["request"].(map[string]any); ok {
		request["object"], request["oldObject"] = orEmpty(a.asked), orEmpty(a.old)
	}
	return out, nil
}

// storedNamespace makes the namespaceObject of a Namespace the one that is stored.
func (a *preparedRequest) storedNamespace(out celScope) error {
	if a.namespace == "" || a.kind.kind != "Namespace" || a.kind.group != "" {
		return nil
	}
	object, err := a.world.Namespace(a.ctx, a.namespace)
	if err != nil {
		return nil //nolint:nilerr // one that cannot be read is null
	}
	namespace, err := namespaceOf(object)
	if err == nil {
		out["namespaceObject"] = common.SchemalessTypedToVal(plugincel.CreateNamespaceObject(namespace))
	}
	return err
}
