package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// alwaysExcused tells whether each update that violates the rule is excused: what
// the rule reads of the object is the same in the old one. match and violated are
// of the old object.
func (u unit) alwaysExcused(match, violated cel.Bool) bool {
	if u.holds.errs || u.pre.errs || !u.pre.b.IsTrue() {
		return false
	}
	now := unchanging(cel.And(u.match, cel.Not(u.holds.b)).Simplify().Value)
	return now.Count("object") == 0 && now.Count("variables") == 0 && cel.Equal(now, unchanging(cel.And(match, violated).Simplify().Value))
}

// unchanging reads what no update changes, the name and the namespace, from neither
// object.
func unchanging(v cel.Value) cel.Value {
	return v.Rewrite(func(x cel.Value) cel.Value {
		path, ok := x.Path()
		if ok && len(path) == 3 && (path[0] == "object" || path[0] == "oldObject") && path[1] == "metadata" && (path[2] == "name" || path[2] == "namespace") {
			return cel.Ident(path[2])
		}
		return x
	})
}

// withoutExcused takes the updates out that the rule can never deny, and says so.
func (l *lowering) withoutExcused(units []unit) []unit {
	var out []unit
	for _, u := range units {
		if u.excused {
			if !l.namesPart(u.target) {
				l.setPos(l.rule.Validate.Pos)
				l.note(diag.NeverOnUpdate, "the rule denies no update: the old object violates it as much as the new one, "+
					"and such updates are let through; set allowExistingViolations: false to have them denied")
			}
			u.exempt = cel.False()
			u.ops = slices.DeleteFunc(slices.Clone(u.ops), func(op operation) bool { return op == opUpdate })
		}
		if len(u.ops) > 0 {
			out = append(out, u)
		}
	}
	return out
}
