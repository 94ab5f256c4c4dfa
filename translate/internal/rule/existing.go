package rule

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/pattern"
	"github.com/kvap/kvap/translate/internal/read"
)

// excuse adds what excuses a violation: under Enforce, an update of an object
// that violated the rule already is admitted. Kyverno never excuses rules with
// preconditions, and judges the old object as if it were being created by nobody:
// where only a filter on users matches, the old object does not.
func excuse(l *read.Lowering, u *pack.Unit) {
	if !excusable(l) || !slices.Contains(u.Operations, native.Update) {
		return
	}
	w := Walk(l, u.Target, []native.Operation{native.Create})
	now := environmentOf(l, u.Target, []native.Operation{native.Update})
	w.Now, w.Notes = &now, nil
	w.Variables, w.Params = slices.Clone(u.Variables), u.Params                   // a name means one thing
	w.Object = read.ValueOf(cel.Ident("oldObject"), read.ObjectType(w, w.Target)) // though the walk is for a creation
	w.Old = read.LitOf(map[string]any{})
	applies := match.Applies(w)
	if applies.IsFalse() {
		return
	}
	violated := celrule.Simplified(w, partial.Sure(w.Apart(body(w, &pack.Unit{})).Fails), now) // an error is no violation
	violated.Expr = fuse(w, violated.Expr)
	if violated.Expr.IsFalse() {
		return
	}
	alone := violated.Expr
	if p := l.Rule.Validate.Pattern; p != nil {
		now, _ := w.OfNewObject().PatternSubject()
		before, _ := w.PatternSubject()
		violated.Expr = cel.And(pattern.NoError(w, now, p), pattern.NoError(w, before, p), violated.Expr)
	}
	if w.Rule.Validate.ForEach != nil {
		if slices.ContainsFunc(w.Rule.Validate.ForEach, hasExistence) {
			panic(l.Unsupported("an existence anchor, in a foreach that excuses existing violations,"))
		}
		ofNew := w.Inside()
		ofNew.Environment = w.OfNewObject()
		apart := ofNew.Apart(body(ofNew, &pack.Unit{}))
		violated.Expr = cel.And(apart.Readable.Given(cel.Not(apart.Holds)), violated.Expr) // asked where the rule fails
	}
	if !cel.Equal(violated.Expr.Value, alone.Value) {
		violated = celrule.Simplified(w, violated, now)
	}
	u.Before = cel.And(applies, violated.Expr)
	u.Exempt, u.Excused = u.Before, alwaysExcused(*u, applies, violated.Expr)
	u.Variables, u.Params = w.Variables, w.Params
	if len(u.Operations) > 1 {
		update := cel.Ident("request").Field("operation").Eq(cel.String(string(native.Update)))
		u.Exempt = cel.And(update, u.Exempt)
	}
}

func hasExistence(e *policy.ForEach) bool {
	return pattern.HasExistence(e.Pattern) || pattern.HasExistence(e.AnyPattern) || slices.ContainsFunc(e.ForEach, hasExistence)
}

func excusable(l *read.Lowering) bool {
	v := l.Rule.Validate
	enforced := read.Action(l) == policy.Enforce || l.Policy.Rehearses(l.Rule)
	return l.Opts.Existing != api.DenyExisting && enforced && v.AllowExisting && v.CEL == nil &&
		l.Rule.Preconditions == nil
}
