package check

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/policy"
)

// A role is what an expression is for.
type role int

const (
	condition role = iota
	variable
	validation
	message
	audit
	mutation
)

// An expression is one of a policy, with where it stands.
type expression struct {
	field string // for instance spec.validations[0].expression
	role  role
	name  string // of a variable or match condition
	text  string
}

// An anyPolicy is a policy of either kind: what both have.
type anyPolicy struct {
	object      *Object
	name        string
	fails       bool // failurePolicy: Fail
	constraints *admissionregistrationv1.MatchResources
	paramKind   *admissionregistrationv1.ParamKind
	expressions []expression   // in the order in which they are evaluated
	places      map[string]int // of the expressions, by field
	trees       map[string]cel.Value
}

// has tells that a field is an expression.
func (s *anyPolicy) has(field string) bool {
	_, ok := s.places[field]
	return ok
}

// expression is the one at a field. A field that has none is an expression without text.
func (s *anyPolicy) expression(field string) expression {
	if s.has(field) {
		return s.expressions[s.places[field]]
	}
	return expression{field: field}
}

// tree is an expression as a tree, made once; not ok for one that is none.
func (s *anyPolicy) tree(e expression) (v cel.Value, ok bool) {
	v, done := s.trees[e.text]
	if !done {
		v, _ = cel.Parse(e.text) // of what is none, the tree is zero
		s.trees[e.text] = v
	}
	return v, !v.IsZero()
}

// subjectOf is nil for a binding.
func subjectOf(o *Object) *anyPolicy {
	s := &anyPolicy{object: o, name: o.Name(), places: map[string]int{}, trees: map[string]cel.Value{}}
	switch {
	case o.Policy != nil:
		spec := &o.Policy.Spec
		s.constraints, s.paramKind = spec.MatchConstraints, spec.ParamKind
		s.fails = spec.FailurePolicy == nil || *spec.FailurePolicy == admissionregistrationv1.Fail
		s.addCommon(spec.MatchConditions, spec.Variables)
		for i, v := range spec.Validations {
			s.add(validation, "", v.Expression, "spec.validations[%d].expression", i)
			if v.MessageExpression != "" {
				s.add(message, "", v.MessageExpression, "spec.validations[%d].messageExpression", i)
			}
		}
		for i, a := range spec.AuditAnnotations {
			s.add(audit, a.Key, a.ValueExpression, "spec.auditAnnotations[%d].valueExpression", i)
		}
	case o.Mutating != nil:
		spec := &o.Mutating.Spec
		s.constraints, s.paramKind = spec.MatchConstraints, spec.ParamKind
		s.fails = spec.FailurePolicy == nil || *spec.FailurePolicy == admissionregistrationv1.Fail
		s.addCommon(spec.MatchConditions, spec.Variables)
		for i, m := range spec.Mutations {
			switch {
			case m.ApplyConfiguration != nil:
				s.add(mutation, "", m.ApplyConfiguration.Expression, "spec.mutations[%d].applyConfiguration.expression", i)
			case m.JSONPatch != nil:
				s.add(mutation, "", m.JSONPatch.Expression, "spec.mutations[%d].jsonPatch.expression", i)
			}
		}
	default:
		return nil
	}
	return s
}

func (s *anyPolicy) addCommon(conditions []admissionregistrationv1.MatchCondition, variables []admissionregistrationv1.Variable) {
	for i, c := range conditions {
		s.add(condition, c.Name, c.Expression, "spec.matchConditions[%d].expression", i)
	}
	for i, v := range variables {
		s.add(variable, v.Name, v.Expression, "spec.variables[%d].expression", i)
	}
}

func (s *anyPolicy) add(r role, name, text, format string, i int) {
	e := expression{field: fmt.Sprintf(format, i), role: r, name: name, text: text}
	s.places[e.field] = len(s.expressions)
	s.expressions = append(s.expressions, e)
}

// tooLarge tells that checking the expressions would take too many steps. Those that kvap
// made were counted in the policy that they come from.
func (s *anyPolicy) tooLarge() bool {
	if s.object.Generated() {
		return false
	}
	var variables []policy.CEL
	var others []string
	for _, e := range s.expressions {
		if e.role == variable {
			variables = append(variables, policy.CEL{Name: e.name, Expression: e.text})
			continue
		}
		others = append(others, e.text)
	}
	return budget.OfExpressions(variables, others) > budget.PerPolicy
}

// rules are the resource rules of the policy.
func (s *anyPolicy) rules() []admissionregistrationv1.NamedRuleWithOperations {
	if s.constraints == nil {
		return nil
	}
	return s.constraints.ResourceRules
}
