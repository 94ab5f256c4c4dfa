package translate

import (
	"github.com/kvap/kvap/cel"
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
func (g group) nameOthers(d *vap.Draft, members []unit) {
	if len(members) < 2 || d.Guard.IsZero() || d.Guard.IsTrue() {
		return
	}
	var states []cel.Value
	asked := map[int]bool{}
	rest, length := cel.True(), 0
	for i := range d.Validations {
		v := &d.Validations[i]
		u := members[v.Member]
		if u.native != nil || u.pre.errs || u.holds.errs {
			continue
		}
		asked[v.Member] = true
		holds := repeatable(d, v)
		if length += len(g.label(u)); length > namesLength {
			rest = cel.And(rest, holds)
			continue
		}
		states = append(states, cel.Cond(holds, cel.String(""), cel.String(g.label(u))))
	}
	if !rest.IsTrue() {
		states = append(states, cel.Cond(rest, cel.String(""), cel.String("others")))
	}
	if len(states) < 2 {
		return
	}
	rule := cel.Ident("rule")
	name := freshName("violated", namesOf(d))
	d.Variables = append(d.Variables, vap.Variable{Pos: d.Members[0].Pos, Name: name,
		Expr: cel.List(states...).Macro("filter", "rule", rule.Ne(cel.String("")).Value)})
	for i := range d.Validations {
		v := &d.Validations[i]
		alone := cel.Int(0)
		if asked[v.Member] {
			alone = cel.Int(1)
		}
		own := cel.String(g.label(members[v.Member]))
		others := variableNamed(name).Macro("filter", "rule", rule.Ne(own).Value).Call("join", cel.String(", "))
		sayToo(v, cel.Cond(variableNamed(name).Size().Compare(">", alone),
			cel.String(" (violated too: ").Plus(others).Plus(cel.String(")")), cel.String("")))
	}
}

// label names a member to those who read a message.
func (g group) label(u unit) string {
	if g.policies() > 1 {
		return memberName(u.policy) + "/" + u.rule.Name
	}
	return u.rule.Name
}

// repeatable makes a check a variable unless it is short.
func repeatable(d *vap.Draft, v *vap.Validation) cel.Bool {
	if len(v.Expr.String()) > repeatedCheck {
		name := freshName("holds", namesOf(d))
		d.Variables = append(d.Variables, vap.Variable{Pos: v.Pos, Name: name, Expr: v.Expr.Value})
		v.Expr = variableNamed(name).AsBool()
	}
	return v.Expr
}

// sayToo lets the message of a validation end with more.
func sayToo(v *vap.Validation, more cel.Value) {
	message := cel.String(v.Message)
	if v.MessageExpression != nil {
		message = *v.MessageExpression
	}
	message = message.Plus(more)
	v.MessageExpression = &message
}
