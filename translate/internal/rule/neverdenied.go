package rule

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/read"
)

// alwaysExcused tells whether each update that violates the rule is excused: every
// old object violates it, or what the rule reads of the object is the same in the old
// one. match and violated are of the old object.
func alwaysExcused(u pack.Unit, match, violated cel.Bool) bool {
	if u.Holds.Errs || u.Pre.Errs || !u.Pre.Expr.IsTrue() {
		return false
	}
	before := cel.And(match, violated).Simplify()
	if before.IsTrue() {
		return true
	}
	now := unchanging(cel.And(u.Match, cel.Not(u.Holds.Expr)).Simplify().Value)
	return now.Count("object") == 0 && now.Count("variables") == 0 && cel.Equal(now, unchanging(before.Value))
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
func withoutExcused(l *read.Lowering, units []pack.Unit) []pack.Unit {
	var out []pack.Unit
	for _, u := range units {
		if u.Excused {
			l.SetPos(l.Rule.Validate.Pos)
			l.Note(diag.NeverOnUpdate, "the rule denies no update: the old object violates it as much as the new one, "+
				"and such updates are let through; set allowExistingViolations: false to have them denied")
			u.Exempt, u.Before = cel.False(), cel.Bool{}
			u.Operations = slices.DeleteFunc(slices.Clone(u.Operations), func(op native.Operation) bool { return op == native.Update })
		}
		if len(u.Operations) > 0 {
			out = append(out, u)
		}
	}
	return out
}
