package interp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// asIf is a review of an object that is there, of which no more is known than what an
// operation on it would tell.
func (a *preparedRequest) asIf(operation string) (*preparedRequest, error) {
	admission := maps.Clone(a.request.Admission)
	admission["operation"], admission["name"] = operation, metaText(a.object, "name")
	if operation == "UPDATE" {
		admission["oldObject"] = a.object
	}
	if digText(admission, "resource", "resource") == "" {
		kind := objectKind(admission)
		plural, err := a.world.Resource(a.ctx, digText(a.object, "apiVersion"), kind.kind)
		if err != nil {
			return nil, err
		}
		admission["resource"] = map[string]any{"group": kind.group, "version": kind.version, "resource": plural}
	}
	if a.kind.kind == "Namespace" && a.kind.group == "" {
		admission["namespace"] = metaText(a.object, "name")
	}
	request := *a.request
	request.Admission = admission
	return newReview(a.ctx, &request, a.world, a.limits), nil
}

// result is a verdict of the policy about existing objects.
func (f *mutatingForm) result(v verdict) RuleResult {
	out := RuleResult{Policy: f.policy.Name, Rule: f.policy.Name, Status: v.status, Kyverno: v.kyverno, Message: v.message, Exceptions: v.exceptions, Code: v.code}
	if f.policy.Namespaced() {
		out.Namespace = f.policy.Namespace
	}
	return out
}

// triggered tells whether a request has existing objects changed.
func (f *mutatingForm) triggered(in *Interpreter, a *preparedRequest) RuleResult {
	v, _, _ := f.trigger(in, a)
	return f.result(v)
}

// trigger passes where a request has existing objects changed: with the scope of its
// object, and the review that it is of. Conditions that err do not hold. Where nobody has
// asked, an object triggers whatever the operations are; where no expression finds the
// targets, it is one itself, if it is selected: others are changed for requests only.
func (f *mutatingForm) trigger(in *Interpreter, a *preparedRequest) (out verdict, scope celScope, of *preparedRequest) {
	defer func() {
		if p := recover(); p != nil {
			out, scope = say(Error, "%v: %v", errPanic, p), nil
		}
	}()
	asked := a.operation != ""
	switch {
	case asked && !f.policy.Admission, f.policy.Namespaced() && a.namespace != f.policy.Namespace:
		return none(), nil, nil
	case f.policy.Invalid:
		return say(Error, "the policy has errors; see what reading it reported"), nil, nil
	}
	if !asked {
		var err error
		if a, err = a.asIf("UPDATE"); err != nil {
			return say(Error, "%v", err), nil, nil
		}
	}
	matches, err := f.triggers(a, asked)
	observe(a.ctx, Observation{Rule: f.policy.Name, Holds: matches, Err: err})
	switch {
	case err != nil:
		return say(Error, "%v", err), nil, nil
	case !matches:
		return none(), nil, nil
	}
	if f.once.Do(func() { f.compile(in) }); f.err != nil {
		return unsupported(fmt.Sprintf("an expression cannot be read: %v", f.err)), nil, nil
	}
	if scope, err = a.mutatingScope(); err != nil {
		return say(Error, "%v", err), nil, nil
	}
	scope["object"] = orEmpty(a.subjectOfCEL())
	scope["exceptions"] = map[string]any{"allowedImages": []string{}, "allowedValues": []string{}}
	scope = scope.with(a.ctx, f.cel)
	if asked || f.targets != nil {
		if holds, err := scope.all(a.ctx, f.conditions); err != nil || !holds {
			return verdict{status: Skip, kyverno: None, message: "match conditions not met"}, nil, nil
		}
	}
	return say(Pass, "the policy is triggered"), scope, a
}

// triggers tells whether the constraints match.
func (f *mutatingForm) triggers(a *preparedRequest, asked bool) (bool, error) {
	if asked {
		return f.matches(a)
	}
	m, attributes := f.policy.Mutating, a.fullAttributes()
	matches, err := constraintsMatch(withoutOperations(f.constraints), a, attributes)
	if !matches || err != nil || m.TargetExpression != "" {
		return matches, err
	}
	return constraintsMatch(withoutOperations(m.Selected()), a, attributes)
}

// withoutOperations are constraints without operations, and without what they exclude.
func withoutOperations(m *policy.MatchConstraints) *policy.MatchConstraints {
	if m == nil {
		return nil
	}
	out := *m
	out.Rules, out.Exclude = slices.Clone(m.Rules), nil
	for i := range out.Rules {
		out.Rules[i].Operations, out.Rules[i].Scope = []string{"*"}, "*"
	}
	return &out
}

// mutateTargets is what the policy wants of the objects that a request has it change.
func (f *mutatingForm) mutateTargets(in *Interpreter, a *preparedRequest, objects ObjectReader) []TargetMutation {
	v, scope, of := f.trigger(in, a)
	switch {
	case v.kyverno == None:
		return nil
	case v.status != Pass:
		return []TargetMutation{{RuleMutation: RuleMutation{RuleResult: f.result(v)}}}
	}
	found, err := f.find(of, scope, a.operation != "", objects)
	var out []TargetMutation
	if err != nil {
		out = append(out, TargetMutation{RuleMutation: RuleMutation{RuleResult: f.result(say(Error, "failed to find the targets: %v", err))}})
	}
	for _, t := range found {
		verdict, after := f.mutateTarget(in, of, t.object)
		one := TargetMutation{APIVersion: digText(t.object, "apiVersion"), Kind: digText(t.object, "kind"), Subresource: t.subresource}
		one.RuleMutation = RuleMutation{RuleResult: f.result(verdict), Before: t.object, After: after}
		out = append(out, one)
	}
	return out
}

// A celTarget is an existing object, and where it is written.
type celTarget struct {
	object      map[string]any
	subresource string
}

// find finds the objects that the policy changes.
func (f *mutatingForm) find(a *preparedRequest, scope celScope, asked bool, objects ObjectReader) ([]celTarget, error) {
	m := f.policy.Mutating
	switch {
	case f.targets != nil:
		return f.evaluateTargets(a.ctx, scope)
	case !asked:
		return []celTarget{{a.object, subresourceOf(m.Selected())}}, nil
	}
	return selectTargets(a, m.Selected(), f.policy, objects)
}

// subresourceOf is the one that the rules name, if they name one.
func subresourceOf(m *policy.MatchConstraints) string {
	for _, r := range m.Rules {
		for _, resource := range r.Resources {
			if _, sub, found := strings.Cut(resource, "/"); found {
				return sub
			}
		}
	}
	return ""
}

// evaluateTargets are the objects that an expression gives: one, those of a list, or none.
func (f *mutatingForm) evaluateTargets(ctx context.Context, scope celScope) ([]celTarget, error) {
	value, err := scope.eval(ctx, f.targets)
	if err != nil || value == types.NullValue {
		return nil, err
	}
	given, err := cellib.Data(value)
	if err != nil {
		return nil, err
	}
	object, ok := given.(map[string]any)
	if !ok || len(object) == 0 {
		return nil, nil
	}
	subresource := ""
	if f.policy.Mutating.Targets != nil {
		subresource = subresourceOf(f.policy.Mutating.Targets)
	}
	items, isList := object["items"].([]any)
	if !isList {
		return []celTarget{{object, subresource}}, nil
	}
	var out []celTarget
	for _, item := range items {
		if one, ok := item.(map[string]any); ok {
			out = append(out, celTarget{ofList(one, object), subresource})
		}
	}
	return out, nil
}

// selectTargets are the objects of the resources that constraints name, by the names and
// the selectors there. Those of a policy of a namespace are in it.
func selectTargets(a *preparedRequest, m *policy.MatchConstraints, p *policy.Policy, objects ObjectReader) (out []celTarget, err error) {
	selector := labels.Everything()
	if chooses(m.ObjectSelector) {
		if selector, err = metav1.LabelSelectorAsSelector(plainSelector(m.ObjectSelector)); err != nil {
			return nil, err
		}
	}
	namespace := ""
	if p.Namespaced() {
		namespace = p.Namespace
	}
	for _, r := range m.Rules {
		for _, group := range r.Groups {
			for _, version := range r.Versions {
				for _, resource := range r.Resources {
					found, err := listTargets(a, group, version, resource, namespace, selector, objects)
					if err != nil {
						return out, err
					}
					for _, t := range found {
						selected, err := a.namespaceOfTarget(m.NamespaceSelector, t.object)
						if err != nil {
							return out, err
						}
						if selected && (len(r.Names) == 0 || slices.Contains(r.Names, metaText(t.object, "name"))) {
							out = append(out, t)
						}
					}
				}
			}
		}
	}
	return out, nil
}

func listTargets(a *preparedRequest, group, version, resource, namespace string, selector labels.Selector, objects ObjectReader) (out []celTarget, err error) {
	plural, subresource, _ := strings.Cut(resource, "/")
	if group == "*" || version == "*" || plural == "*" {
		return nil, fmt.Errorf("the targets are %s of %s/%s, and nothing says which these are; write them out in targetMatchConstraints", resource, group, version)
	}
	kind, ok := a.world.Kind(group, version, plural)
	if !ok {
		return nil, fmt.Errorf("the cluster serves no %s of %s/%s", plural, group, version)
	}
	list, err := objects.List(a.ctx, strings.TrimPrefix(group+"/"+version, "/"), kind, namespace, selector)
	for _, object := range list {
		out = append(out, celTarget{object, subresource})
	}
	return out, err
}

// namespaceOfTarget holds a selector to the namespace of a target, and to a Namespace itself.
func (a *preparedRequest) namespaceOfTarget(s *policy.Selector, target map[string]any) (bool, error) {
	if !chooses(s) {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(plainSelector(s))
	if err != nil {
		return false, err
	}
	if target["kind"] == "Namespace" && target["apiVersion"] == "v1" {
		return selector.Matches(labels.Set(metaMap(target, "labels"))), nil
	}
	name := metaText(target, "namespace")
	if name == "" {
		return true, nil
	}
	namespace, err := a.world.Namespace(a.ctx, name)
	if err != nil {
		return false, fmt.Errorf("failed to get the labels of the namespace: %w", err)
	}
	return selector.Matches(labels.Set(metaMap(namespace, "labels"))), nil
}

// mutateTarget changes one object. Expressions see it as object, in variables too;
// request.object stays the trigger.
func (f *mutatingForm) mutateTarget(in *Interpreter, a *preparedRequest, target map[string]any) (out verdict, after map[string]any) {
	defer func() {
		if p := recover(); p != nil {
			out = say(Error, "%v: %v", errPanic, p)
		}
		if out.status != Pass || len(out.exceptions) > 0 {
			after = target
		}
	}()
	if err := givenUp(a.ctx); err != nil {
		return say(Error, "%v", err), nil
	}
	scope, err := a.mutatingScope()
	if err != nil {
		return say(Error, "%v", err), nil
	}
	scope["object"], scope["oldObject"], scope["namespaceObject"] = target, map[string]any{}, types.NullValue
	allowed, excepted, err := a.celExcepted(f.exceptions, scope, false)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate policy: failed to evaluate an exception: %v", err), nil
	case excepted != nil:
		return *excepted, nil
	}
	scope["exceptions"] = allowed
	scope = scope.with(a.ctx, f.cel)
	applies, err := scope.all(a.ctx, f.targetConditions)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate policy: failed to evaluate the target match conditions: %v", err), nil
	case !applies:
		return say(Skip, "skip"), nil
	}
	return f.change(in, a, scope, target)
}
