package vap

import (
	"fmt"
	"slices"

	"github.com/kvap/kvap/diag"
)

// A Refusal is why the API server would refuse an object: a field of it, and what there
// is to say of that, on one line.
type Refusal struct{ Field, Message string }

// MadeFrom is what a field of the policy or of a binding was made from: a place in
// the source, and the members of the draft without which it would not be there.
func (o Objects) MadeFrom(field string) (diag.Pos, []int) {
	d := o.Draft
	var i int
	switch {
	case index(field, "spec.validations[%d]", &i) && i < len(d.Validations):
		v := d.Validations[i]
		return v.Pos, append([]int{v.Member}, v.Also...)
	case index(field, "spec.variables[%d]", &i) && i < len(o.Policy.Spec.Variables):
		name := o.Policy.Spec.Variables[i].Name
		for _, v := range d.Variables {
			if v.Name == name {
				return v.Pos, d.readers(name)
			}
		}
	case index(field, "spec.matchConditions[%d]", &i) && i < len(o.Policy.Spec.MatchConditions):
		name := o.Policy.Spec.MatchConditions[i].Name
		for _, c := range d.Conditions {
			if c.Name == name {
				return c.Pos, d.AllMembers()
			}
		}
	case index(field, "spec.auditAnnotations[%d]", &i) && i < len(d.Audits):
		return d.Audits[i].Pos, d.AllMembers()
	}
	if len(d.Members) == 0 {
		return diag.Pos{}, nil
	}
	return d.Members[0].Pos, d.AllMembers()
}

// IsGuard tells that a field of the policy is the guard's.
func (o Objects) IsGuard(field string) bool {
	var i int
	return index(field, "spec.matchConditions[%d]", &i) && o.Draft.guards() > 0 && i == len(o.Policy.Spec.MatchConditions)-1
}

// MembersAt are the members that an expression from a place of the source is for:
// all, where it is none of a single one.
func (d *Draft) MembersAt(pos diag.Pos) []int {
	var out []int
	for _, v := range d.Validations {
		if v.Pos == pos && !slices.Contains(out, v.Member) {
			out = append(append(out, v.Member), v.Also...)
		}
	}
	for _, v := range d.Variables {
		if v.Pos != pos {
			continue
		}
		for _, m := range d.readers(v.Name) {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	if out == nil {
		return d.AllMembers()
	}
	return out
}

// AllMembers are the indexes of all members.
func (d *Draft) AllMembers() []int {
	out := make([]int, len(d.Members))
	for i := range out {
		out[i] = i
	}
	return out
}

// readers are the members whose validations read a variable, if only by another
// one; all, where something else reads it.
func (d *Draft) readers(name string) []int {
	reading := map[string]bool{name: true}
	reads := func(uses []string) bool {
		return slices.ContainsFunc(uses, func(u string) bool { return reading[u] })
	}
	for _, v := range d.Variables { // in order of dependence
		if reads(v.Expr.Uses("variables")) {
			reading[v.Name] = true
		}
	}
	var out []int
	for _, v := range d.Validations { // but for what messages say of other members
		uses := v.Expr.Uses("variables")
		if v.MessageExpression != nil {
			uses = append(uses, v.MessageExpression.Uses("variables")...)
		}
		if reads(uses) && !slices.Contains(out, v.Member) {
			out = append(append(out, v.Member), v.Also...)
		}
	}
	if out == nil {
		return d.AllMembers()
	}
	return out
}

func index(field, format string, i *int) bool {
	n, _ := fmt.Sscanf(field, format, i)
	return n == 1
}
