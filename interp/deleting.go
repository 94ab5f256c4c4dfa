package interp

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/interp/internal/cellib"
	"github.com/kvap/kvap/policy"
)

// A deleting is a DeletingPolicy. It is compiled when it is first needed.
type deleting struct {
	policy      *policy.Policy // whose kind and name exceptions are from
	of          *policy.Deleting
	constraints *policy.MatchConstraints
	excepting   []*policy.Exception

	once       sync.Once
	cel        *celPolicy
	exceptions []celException
	conditions []cel.Program
	err        error
	at         diag.Pos // of the first expression that does not compile
}

// readDeleting reads what a DeletingPolicy says. It deletes whatever its rules have for
// operations; what they leave out is compared with the creation of the object.
func readDeleting(c *policy.Cleanup, exceptions []*policy.Exception) *deleting {
	d := &deleting{policy: &policy.Policy{Kind: c.Kind, Name: c.Name}, of: c.Deleting, excepting: exceptions}
	if c.Kind == "NamespacedDeletingPolicy" {
		d.policy.Namespace = c.Namespace
	}
	all := *c.Deleting.MatchConstraints
	all.Rules = slices.Clone(all.Rules)
	for i := range all.Rules {
		all.Rules[i].Operations = []string{"*"}
	}
	d.constraints = &all
	return d
}

// compile compiles the expressions. Conditions know the variables, those of exceptions too.
func (d *deleting) compile(in *Interpreter) {
	if d.err = budget.CheckDeleting(d.of); d.err != nil {
		return
	}
	if d.cel, d.err = in.celPolicy(cellib.PolicyKind{Namespace: d.policy.Namespace}); d.err != nil {
		return
	}
	note := func(at diag.Pos, err error) {
		if err != nil && d.err == nil {
			d.at = at
		}
		d.err = errors.Join(d.err, err)
	}
	for _, one := range d.of.Variables {
		note(one.Pos, d.cel.define(one.Name, one.Expression))
	}
	for _, one := range d.of.Conditions {
		program, err := d.cel.compile(one.Expression, cel.BoolType)
		d.conditions = append(d.conditions, program)
		note(one.Pos, err)
	}
	var err error
	d.exceptions, err = d.cel.exceptions(d.excepting, d.policy)
	d.err = errors.Join(d.err, err)
}

// matches tells whether the policy is about an object. It is about any document that is no
// Kubernetes object.
func (d *deleting) matches(a *preparedRequest) (bool, error) {
	switch {
	case a.object["apiVersion"] == nil && a.object["kind"] == nil:
		return true, nil
	case d.policy.Namespace != "" && a.namespace != d.policy.Namespace:
		return false, nil
	}
	return constraintsMatch(d.constraints, a, a.fullAttributes())
}

// deletes tells whether the policy deletes an object that it matches. Whatever an exception
// excepts from it, it keeps.
func (d *deleting) deletes(a *preparedRequest) (bool, error) {
	scope, err := a.deletingScope()
	if err != nil {
		return false, err
	}
	scope = scope.with(a.ctx, d.cel)
	for _, e := range d.exceptions {
		applies, err := a.applies(e, scope)
		if err != nil {
			return false, fmt.Errorf("failed to evaluate an exception: %s/%s: %w", e.Namespace, e.Name, err)
		}
		if applies {
			return false, nil
		}
	}
	holds, err := scope.all(a.ctx, d.conditions)
	if err != nil {
		return false, fmt.Errorf("failed to evaluate conditions: %w", err)
	}
	return holds, nil
}

// deletingScope is an object as the expressions of a DeletingPolicy see it. There is no
// request. The namespace of a Namespace is itself.
func (a *preparedRequest) deletingScope() (celScope, error) {
	out := celScope{"object": a.object, "namespaceObject": types.NullValue}
	namespace, err := a.celNamespace()
	if a.kind.kind == "Namespace" && a.kind.group == "" {
		if namespace, err = namespaceOf(a.object); err != nil {
			return nil, err
		}
	}
	if err == nil && namespace != nil { // one that cannot be read is null
		out["namespaceObject"] = common.SchemalessTypedToVal(plugincel.CreateNamespaceObject(namespace))
	}
	return out, nil
}
