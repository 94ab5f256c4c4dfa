package fields

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// UnknownOf warns of the fields that a ValidatingPolicy or a MutatingPolicy reads and no object has, as
// Unknown does.
func UnknownOf(p *policy.Policy, set *schema.Set, b *budget.Budget) diag.List {
	if p.Validating != nil {
		return unknownIn(p.Validating.MatchConstraints, p.Validating.Variables, expressionsOf(p.Validating.MatchConditions, p.Validating.Validations), set, b)
	}
	said := slices.Clone(p.Mutating.MatchConditions)
	if !p.Mutating.ChangesOthers() { // whose fields they read
		for _, m := range p.Mutating.Mutations {
			said = append(said, policy.CEL{Pos: m.Pos, Expression: m.Expression})
		}
	}
	return unknownIn(p.Mutating.MatchConstraints, p.Mutating.Variables, said, set, b)
}

// unknownIn warns of the fields that expressions read and no object has of the kinds that a policy
// matches.
func unknownIn(constraints *policy.MatchConstraints, variables, expressions []policy.CEL, set *schema.Set, b *budget.Budget) diag.List {
	u := &fieldWalk{budget: b}
	if constraints == nil {
		return nil
	}
	for _, r := range constraints.Rules {
		for _, group := range r.Groups {
			for _, version := range r.Versions {
				for _, resource := range r.Resources {
					of, ok := set.ByResource(group, version, resource)
					if !ok || strings.Contains(resource, "/") {
						return nil
					}
					typ := set.Type(of.GVK)
					if typ == nil || typ.Kind != schema.Object {
						return nil
					}
					u.subject = append(u.subject, alternative{kind: of.Kind, typ: typ, in: fieldsOf(set, of.GVK)})
				}
			}
		}
	}
	u.expressions(variables, expressions)
	return u.found.Sort()
}

// expressionsOf are the expressions of conditions and validations.
func expressionsOf(conditions []policy.CEL, validations []policy.CELValidation) []policy.CEL {
	out := slices.Clone(conditions)
	for _, v := range validations {
		out = append(out, policy.CEL{Pos: v.Pos, Expression: v.Expression})
	}
	return out
}

// expressions goes through what a policy or a rule says in CEL.
func (u *fieldWalk) expressions(variables, others []policy.CEL) {
	composed, told := map[string]cel.Value{}, map[string]bool{}
	for _, e := range variables { // what others read by these is told here
		composed[e.Name] = u.read(e.Expression, e.Pos, composed, told)
	}
	for _, e := range others {
		u.read(e.Expression, e.Pos, composed, told)
	}
}

// read goes through an expression, which may be none: that is told where it is compiled.
func (u *fieldWalk) read(text string, at diag.Pos, composed map[string]cel.Value, told map[string]bool) cel.Value {
	v, err := cel.Parse(text)
	if err != nil {
		return cel.Null()
	}
	for _, path := range slices.Concat(v.Paths("object", composed), v.Paths("oldObject", composed)) {
		u.along(path, at, told)
	}
	return v
}

// along goes along a path. A place of which it is told is in told, and nothing is below it.
func (u *fieldWalk) along(path []string, at diag.Pos, told map[string]bool) {
	in := u.subject
	for i, name := range path {
		u.budget.Spend(1 + len(in))
		switch key := strings.Join(path[:i+1], "."); {
		case told[key]:
			return
		case name == cel.EachElement:
			elements := in.items()
			if elements == nil {
				elements = in.values()
			}
			in = elements
		default:
			before := len(u.found)
			in = u.field(in, name, at)
			told[key] = len(u.found) > before
		}
	}
}
