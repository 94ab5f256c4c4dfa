package pack

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/vap"
)

// A guard is a match condition that is true when some validation of the object is
// not. On a request that violates nothing the API server stops there. It is never
// an error, and false only where every validation is true: what cannot be said in
// a match condition is left out of it, so that the guard is true more often.
//
// guard is the one for members, which are named as in the draft; true where there
// is none.
func (g group) guard(d *vap.Draft, members []Unit, o Options) cel.Bool {
	if o.Unguarded || len(d.Audits) > 0 {
		return cel.True()
	}
	w := g.watch(d.Variables)
	if !w.concludes(d.Conditions) {
		return cel.True()
	}
	var violations []cel.Bool
	for _, u := range members {
		b, _ := w.violation(u)
		if b.IsTrue() {
			return b
		}
		violations = append(violations, b)
	}
	return w.any(violations)
}

// any is: some violation is there, as a search.
func (w watch) any(violations []cel.Bool) cel.Bool {
	return cel.AnyOf(violations, w.variables, w.total).Searching().MergeLoops().Rooted()
}

// sayOnce leaves to the validation of a guarded rule what its guard has not asked: only
// an excuse for an old violation. Rules of many policies go on saying all, so that one
// that comes or goes changes no other.
func (g group) sayOnce(d *vap.Draft, members []Unit) {
	if len(members) != 1 || g.byKind || d.Guard.IsTrue() || !g.watch(d.Variables).decides(members[0]) {
		return
	}
	d.Validations[0].Left = members[0].Exempt.Rooted()
}

// askBoth has the guard of a rule that says everything once ask the old object the same
// question: what the old object violated too is excused, and is then no part of the
// validation. It does where the excuse is that question, and a guard of twice the cost
// is none too costly. What the guard itself asks of the old object, or of no object, it asks of a
// deletion too, which nothing excuses.
func (g group) askBoth(d *vap.Draft, members []Unit, match cel.Bool) {
	if len(members) != 1 || members[0].Before.IsZero() || d.Validations[0].Left.IsZero() || d.Validations[0].Left.IsFalse() {
		return
	}
	mentions := func(b cel.Bool, name string) bool { return native.Mentions(b.Value, name) }
	ofOld := func(b cel.Bool) bool { return mentions(b, "oldObject") || mentions(b, vap.OldPodName) }
	if ofOld(d.Guard) || ofOld(match) || !mentions(d.Guard, "object") && !mentions(d.Guard, vap.PodName) {
		return
	}
	w, u := g.watch(d.Variables), members[0]
	old := func(b cel.Bool) cel.Bool {
		return b.Rename("object", "oldObject").Rename(vap.PodName, vap.OldPodName).AsBool()
	}
	before := old(match).Given(match)
	asked := w.any([]cel.Bool{cel.And(before, old(d.Guard).Given(match))})
	excuse := w.any([]cel.Bool{u.Before})
	if !cel.Equal(asked.Simplify().Value, excuse.Simplify().Value) {
		return
	}
	if slices.ContainsFunc(g.worstCases(), func(c worstCase) bool { return c.exceeds(d.Guard.Value, guardBudget/2) }) {
		return
	}
	d.Validations[0].Left = cel.False()
	d.Before = before.Rename("oldObject", "object").Rename(vap.OldPodName, vap.PodName).AsBool()
}

// askOnce takes the guard away where the validations behind it ask the same again: whoever
// reads the object would read it twice. An object of many policies, which nobody reads, keeps
// its guard.
func (g group) askOnce(d *vap.Draft) {
	if !g.byKind && (len(d.Validations) > 1 || d.Validations[0].Left.IsZero()) {
		d.Guard = cel.True()
	}
}

// askNoLess leaves out the match conditions that follow from a guard that says everything.
func askNoLess(d *vap.Draft) {
	if len(d.Validations) != 1 || d.Validations[0].Left.IsZero() || d.Guard.IsTrue() {
		return
	}
	for i, c := range d.Conditions {
		d.Conditions[i].Follows = c.Sound && d.Guard.FalseWith(c.Expr)
	}
}

// decides tells that the unit's violation is all that denies, but for an excuse. A check
// that is an error denies as well, if errors do and its text is for nobody; no excuse is one
// for an error.
func (w watch) decides(u Unit) bool {
	if u.CEL != nil || u.Pre.Errs || u.Tells || !w.sayable(u.Match.Value) || !w.sayable(u.Pre.Expr.Value) {
		return false
	}
	_, holds := w.surely(u.Holds)
	denies := u.failurePolicy() == string(policy.Fail) && u.Exempt.IsFalse()
	return holds && (!u.Holds.Errs || denies || w.total(u.Holds.Expr.Value))
}

// A watch is what guards of a group are made with.
type watch struct {
	variables []cel.Definition
	byKind    bool
	around    []cel.Surroundings // one for each target
}

func (g group) watch(variables []vap.Variable) watch {
	w := watch{byKind: g.byKind}
	for _, v := range variables {
		w.variables = append(w.variables, cel.Definition{Name: v.Name, Expr: v.Expr})
	}
	for _, t := range g.targets {
		own, pod := native.ShapeOf(t.Body), native.ShapeOf(native.PodOf(t.Target))
		w.around = append(w.around, cel.Surroundings{
			Roots: []cel.Root{
				{Name: "object", Shape: own, Null: slices.Contains(t.ops, "DELETE")},
				{Name: "oldObject", Shape: own, Null: slices.Contains(t.ops, "CREATE") || slices.Contains(t.ops, "CONNECT")},
				{Name: "request", Shape: native.RequestShape()},
				{Name: vap.PodName, Shape: pod, Null: slices.Contains(t.ops, "DELETE")},
				{Name: vap.OldPodName, Shape: pod, Null: slices.Contains(t.ops, "CREATE")},
			},
			Variables: w.variable,
		})
	}
	return w
}

func (w watch) variable(name string) (cel.Value, bool) {
	for _, v := range w.variables {
		if v.Name == name {
			return v.Expr, true
		}
	}
	return cel.Value{}, false
}

// total tells that v is never an error on any target.
func (w watch) total(v cel.Value) bool {
	return !slices.ContainsFunc(w.around, func(s cel.Surroundings) bool { return !v.IsTotal(s) })
}

// concludes tells that conditions are never an error: beside one that is, a guard
// that is false would hide the error.
func (w watch) concludes(conditions []vap.Condition) bool {
	return !slices.ContainsFunc(conditions, func(c vap.Condition) bool {
		return !c.Sound && !w.total(c.Expr.Value)
	})
}

// violation is: the unit applies and does not hold, as far as a match condition
// can say it. An excuse for an old violation is left to the validation. ok tells
// that what must hold is part of it.
func (w watch) violation(u Unit) (b cel.Bool, ok bool) {
	match, some, fails := cel.True(), cel.True(), cel.True()
	if w.sayable(u.Match.Value) {
		match = u.Match
	}
	match = cel.And(u.asked(), match) // of other requests what follows may be an error
	if no, ok := w.surely(u.Pre.Not()); ok {
		some = no.Violation(w.variables)
	}
	holds, ok := w.surely(u.checks())
	if ok {
		fails = holds.Violation(w.variables)
	}
	if u.Pre.Errs && !w.total(u.Pre.Expr.Value) { // an error is one whatever the body says
		yes, sure := w.surely(u.Pre)
		if !sure {
			return cel.And(match, some), false
		}
		fails = cel.Or(yes.Violation(w.variables), fails)
	}
	return cel.And(match, some, fails), ok
}

// checks is what the unit's validations ask behind its preconditions.
func (u Unit) checks() partial.Bool {
	if u.CEL == nil {
		return u.Holds
	}
	all := make([]cel.Bool, len(u.CEL.Checks))
	for i, c := range u.CEL.Checks {
		all[i] = c.Expr
	}
	return partial.MayErr(cel.And(all...))
}

// surely is an expression that is never an error, and true only where t is; false
// where there is none for a match condition.
func (w watch) surely(t partial.Bool) (cel.Bool, bool) {
	b := t.Expr
	switch {
	case !w.sayable(b.Value):
		return b, false
	case !t.Errs || w.total(b.Value):
		return b, true
	case len(w.around) != 1 && !w.byKind: // the guard of one rule would be longer than the rule
		return b, false
	}
	for _, s := range w.around {
		b = b.Guarded(s)
	}
	return b, w.total(b.Value)
}

// sayable tells that a match condition may say v: it knows neither params nor the
// namespace, it sees the resource that was asked for and not the one that matched,
// and to ask the authorizer is no cheap way to find out.
func (w watch) sayable(v cel.Value) bool {
	for _, name := range []string{"namespaceObject", "params", "authorizer"} {
		if native.Mentions(v, name) {
			return false
		}
	}
	if v.UsesAll("request") || slices.Contains(v.Uses("request"), "resource") || v.UsesAll("variables") {
		return false
	}
	return !slices.ContainsFunc(v.Uses("variables"), func(name string) bool {
		behind, ok := w.variable(name)
		return !ok || !w.sayable(behind)
	})
}

// byGuard splits a group into the units that a guard can speak for and the others,
// which would keep the guard from being false.
func (g group) byGuard(o Options) []group {
	if o.Unguarded || !o.ByKind {
		return []group{g}
	}
	var watched, others []Unit
	for _, u := range g.units {
		if _, ok := g.watch(u.Variables).violation(u); ok {
			watched = append(watched, u)
		} else {
			others = append(others, u)
		}
	}
	var out []group
	if len(watched) > 0 {
		out = append(out, g.with(watched))
	}
	if len(others) > 0 {
		g.unguarded = true
		out = append(out, g.with(others))
	}
	return out
}

// packBudget is a third of what the API server lets the validations of one policy
// and binding cost (10 million): a pack keeps a wide margin, for an error of the
// estimate and for objects larger than any that it assumes.
const packBudget = 10_000_000 / 3

// packMembers bounds a pack by what a person can still read, and by what an object
// says of its members.
const packMembers = 100

// longestGuard is how long a guard is at most on one line. The API server parses
// expressions of 100,000 characters; broken into lines, they are longer.
const longestGuard = 60_000

// withinBudget splits a group whose members would together cost too much. A member
// that is too costly alone is alone. The others are split by their names.
func (g group) withinBudget(o Options) []group {
	if g.byKind && len(g.units) == 1 { // and it stays alone when others come
		g.alone = g.costly(o)
	}
	if g.fits(o) {
		return []group{g}
	}
	var out []group
	var others []Unit
	for _, u := range g.units {
		one := g.with([]Unit{u})
		if one.costly(o) {
			one.alone = true
			out = append(out, one)
		} else {
			others = append(others, u)
		}
	}
	if len(others) > 0 {
		out = append(g.with(others).split(o, letters{last: lastSymbol}), out...)
	}
	return out
}

func (g *group) fits(o Options) bool {
	return len(g.units) == 1 || len(g.units) <= packMembers && !g.costly(o)
}

// costly tells that the API server might stop evaluating the validations of a
// group, or its guard, on an object that people could write; or that the guard is
// so long that it would be left out.
func (g *group) costly(o Options) bool {
	var spent int64
	for _, u := range g.units {
		spent += u.cost()
	}
	if spent > packBudget {
		return true
	}
	g.made = g.draft(o)
	guard := g.made.Guard
	if guard.IsZero() || guard.IsTrue() {
		return false
	}
	return len(guard.String()) > longestGuard || slices.ContainsFunc(g.worstCases(), func(w worstCase) bool {
		return w.exceeds(guard.Value, guardBudget)
	})
}

// worstCases are those of the group's targets.
func (g group) worstCases() []worstCase {
	bound := boundOf(g.units[0].failurePolicy())
	var out []worstCase
	for _, t := range g.targets {
		out = append(out, newWorstCase(bound, t.Body, native.PodOf(t.Target)))
	}
	return out
}

// withoutCostlyGuard takes the guard of a draft away where it may cost more than the
// API server allows, and none of the expressions behind it costs as much: only
// then would it be to blame for an error. Only a rule that is alone can have such
// a guard.
func (g group) withoutCostlyGuard(d *vap.Draft) {
	if len(g.units) > 1 || d.Guard.IsZero() || d.Guard.IsTrue() {
		return
	}
	for _, w := range g.worstCases() {
		if !w.exceeds(d.Guard.Value, guardBudget) {
			continue
		}
		place, cost := w.dearest(d.Guard.Value)
		// mostly that is what the guard guards, and what fills it costs that as much
		asMuch := func(v cel.Value) bool {
			if w.costAt(v, place) >= cost {
				return true
			}
			_, most := w.dearest(v)
			return most >= cost
		}
		if !slices.ContainsFunc(d.Validations, func(v vap.Validation) bool { return asMuch(v.Expr.Value) }) &&
			!slices.ContainsFunc(d.Variables, func(v vap.Variable) bool { return asMuch(v.Expr) }) {
			d.Unguard()
			return
		}
	}
}

// checkers are what the API server's type checker makes of the kinds of a group.
// CEL that the user wrote is left as it is.
func (g group) checkers() []cel.Checker {
	if g.units[0].CEL != nil {
		return nil
	}
	var out []cel.Checker
	for _, t := range g.targets {
		if shape := native.ShapeOf(t.Type); shape != nil {
			out = append(out, cel.Checker{
				Roots:  []cel.Root{{Name: "object", Shape: shape}, {Name: "oldObject", Shape: shape}},
				Hidden: native.IsShape((*schema.Type).HoldsQuantities), // which a cluster says are texts or numbers: no type to the checker
				Struct: native.IsShape(structured),
			})
		}
	}
	return out
}

// structured tells of objects, and of lists and maps of them.
func structured(t *schema.Type) bool {
	if t == nil {
		return false
	}
	return t.Kind == schema.Object || structured(t.Elem)
}
