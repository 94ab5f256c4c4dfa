package pack

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// namesLength is how many bytes the names of violated rules have at most in a
// message. A message of more than 5,120 bytes is not shown.
const namesLength = 2_500

// repeatedCheck is the longest check that stands in two places. A longer one
// becomes a variable.
const repeatedCheck = 100

// nameOthers makes each message of a guarded object say which other rules of it are
// violated: the API server reports one violation, and up to 1.36 records one. It
// evaluates all messages of an object, but only behind the guard; so this costs
// nothing where all is well. Rules that may err are not asked for: an error of one
// would lose the message of another.
func (g group) nameOthers(d *vap.Draft, members []Unit) {
	if len(members) < 2 || d.Guard.IsZero() || d.Guard.IsTrue() {
		return
	}
	asked := func(v vap.Validation) bool {
		u := members[v.Member]
		return u.CEL == nil && !u.Pre.Errs && !u.Holds.Errs
	}
	var states []cel.Value
	rest, length := cel.True(), 0
	for i := range d.Validations {
		v := &d.Validations[i]
		if !asked(*v) {
			continue
		}
		label := g.label(members[v.Member])
		holds := repeatable(d, v, members[v.Member].Rule.Origin)
		if length += len(label); length > namesLength {
			rest = cel.And(rest, holds)
			continue
		}
		states = append(states, cel.Cond(holds, cel.String(""), cel.String(label)))
	}
	if !rest.IsTrue() {
		states = append(states, cel.Cond(rest, cel.String(""), cel.String("others")))
	}
	if len(states) < 2 {
		return
	}
	violated := declare(d, "violated", new(cel.Scope).Filter(cel.List(states...), "rule", func(rule cel.Value) cel.Bool { return rule.Ne(cel.String("")) }))
	all := declare(d, "allViolated", listed(violated, 1, " (all violated: "))
	for i := range d.Validations {
		if v := &d.Validations[i]; asked(*v) {
			v.More = &all
		} else {
			too := listed(violated, 0, " (violated too: ")
			v.More = &too
		}
	}
}

// declare adds a variable to the draft.
func declare(d *vap.Draft, name string, expr cel.Value) cel.Value {
	name = native.FreshName(name, d.Variables)
	d.Variables = append(d.Variables, vap.Variable{Pos: d.Members[0].Pos, Name: name, Expr: expr})
	return native.VariableNamed(name)
}

// listed is the names after some words, if there are more than so many.
func listed(names cel.Value, more int64, words string) cel.Value {
	return cel.Cond(names.Size().Compare(cel.Greater, cel.Int(more)),
		cel.String(words).Plus(names.Call(cel.FuncJoin, cel.String(", "))).Plus(cel.String(")")), cel.String(""))
}

// label names a member to those who read a message.
func (g group) label(u Unit) string {
	if len(g.sources()) > 1 || g.byKind {
		return native.MemberName(u.Policy) + "/" + u.name()
	}
	return u.name()
}

// repeatable makes the check of a rule a variable unless it is short.
func repeatable(d *vap.Draft, v *vap.Validation, rule string) cel.Bool {
	if len(v.Expr.String()) <= repeatedCheck {
		return v.Expr
	}
	i := slices.IndexFunc(d.Variables, func(have vap.Variable) bool { return cel.Equal(have.Expr, v.Expr.Value) })
	if i < 0 {
		i = len(d.Variables)
		d.Variables = append(d.Variables, vap.Variable{Pos: v.Pos, Name: native.NameByRule("holds", rule, d.Variables), Expr: v.Expr.Value})
	}
	v.Expr = native.VariableNamed(d.Variables[i].Name).AsBool()
	return v.Expr
}
