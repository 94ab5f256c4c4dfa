package check

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap/apiserver"
)

// acceptance reports what an API server of the release refuses the object for, and
// gives the fields that are to blame.
func (c *checking) acceptance(r *Result, s *anyPolicy, release cel.Release) map[string]bool {
	refused := map[string]bool{}
	for _, e := range c.errors(r.Object, release) {
		refused[e.Field] = true
		if lintTells(r.Object, e) {
			continue
		}
		if s == nil || !s.has(e.Field) {
			c.refusedField(r, e)
			continue
		}
		c.refusedExpression(r, release, s.expression(e.Field), e)
	}
	return refused
}

// lintTells tells of what a lint says better.
func lintTells(o *Object, e *field.Error) bool {
	if b, ok := boundOf(o); ok {
		return e.Field == "spec.paramRef.parameterNotFoundAction" && e.Type == field.ErrorTypeRequired ||
			e.Field == "spec.validationActions" && b.does(admissionregistrationv1.Deny) && b.does(admissionregistrationv1.Warn)
	}
	return false
}

func (c *checking) errors(o *Object, release cel.Release) field.ErrorList {
	create := c.of(release).create
	switch {
	case o.Policy != nil:
		return create.Validate(o.Policy)
	case o.Binding != nil:
		return apiserver.ValidateBinding(o.Binding)
	case o.Mutating != nil:
		return create.ValidateMutating(o.Mutating)
	}
	return apiserver.ValidateMutatingBinding(o.MutatingBinding)
}

func (c *checking) refusedField(r *Result, e *field.Error) {
	r.report(0, e.Field, refusal(e))
}

// refusedExpression tells a function that the release does not have yet from what no
// release takes.
func (c *checking) refusedExpression(r *Result, release cel.Release, x expression, e *field.Error) {
	if v, err := cel.Parse(x.text); err == nil {
		if need := v.FirstRelease(); need > release {
			r.reportIn(release, x, 0, 0, notYet(v, release, need, c.of(release).create.Functions()))
			return
		}
	}
	p, ok := apiserver.FirstProblem(e.Detail)
	if !ok {
		p.Message = e.Detail
	}
	r.reportIn(0, x, p.Line, p.Col, refusedCEL(p.Message))
}
