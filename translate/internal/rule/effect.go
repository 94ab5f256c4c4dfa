package rule

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/pattern"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// What a rule does whatever is in the objects: it denies each of them, or none, or is an error.
// The walks have worked that out, and hardly anybody means it, so it is told. Where it is not
// sure, nothing is said.

// found notes what a rule comes to for the target and the operations of a walk.
func found(w *read.Lowering, asked cel.Bool, pre, holds partial.Bool) {
	if w.Findings == nil || w.Notes == nil {
		return
	}
	whole := read.Whole{Target: w.Target, Operations: w.Ops, Match: asked, Pre: pre, Holds: holds}
	whole.Unread = neverRead(w, pre) || pre.Expr.IsTrue() && neverRead(w, holds)
	if pre.Errs && !whole.Unread {
		whole.Needed = needed(w, asked, pre)
	}
	w.Findings.Wholes = append(w.Findings.Wholes, whole)
}

// neverRead tells that a condition is an error on every request.
func neverRead(w *read.Lowering, b partial.Bool) bool {
	if !b.Errs {
		return false
	}
	where, ok := w.WhereRead(b)
	return ok && celrule.Simplified(w, partial.Sure(where), w.Environment).Expr.IsFalse()
}

// needed are the fields that objects may lack, and without which preconditions are an error.
func needed(w *read.Lowering, asked cel.Bool, pre partial.Bool) (paths [][]string) {
	where, ok := w.WhereRead(pre)
	if !ok {
		return nil
	}
	where = celrule.Simplified(w, partial.Sure(where.Given(asked)), w.Environment).Expr
	for _, path := range askedOf(where) {
		if mayLack(w.Target, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// askedOf are the fields of the object that a condition asks for, whatever else it asks.
func askedOf(c cel.Bool) (paths [][]string) {
	for _, term := range c.Conjuncts() {
		if path, ok := term.Asked(); ok && path[0] == "object" {
			paths = append(paths, path[1:])
		}
	}
	return paths
}

// mayLack tells of a field that an ordinary object of the kind may lack. Of most fields of
// built-in kinds that is not known, for an API server has defaults: it is of the entries of maps,
// and of a few others.
func mayLack(t native.Target, path []string) bool {
	typ := t.Body
	for i, name := range path {
		if typ == nil || typ.Default != nil {
			return false
		}
		if typ.Kind == schema.Map {
			free := i > 0 && slices.Contains([]string{"labels", "annotations", "nodeSelector", "data"}, path[i-1]) // no validation asks for one
			return free && i == len(path)-1 && !slices.Contains([]string{"Namespace", "Node"}, t.Parent.Kind)      // whose labels others write
		}
		f := typ.Fields[name]
		if f == nil {
			return false
		}
		typ = f.Type
	}
	return slices.Contains([]string{"initContainers", "ephemeralContainers", "nodeSelector"}, path[len(path)-1])
}

// effects tells what the rule does to all objects of some kind.
func effects(l *read.Lowering, units []pack.Unit) diag.List {
	e := effect{l: l, out: new(diag.List)}
	for _, w := range l.Findings.Wholes {
		if w.Target.Subresource != "ephemeralcontainers" { // which goes with the Pod
			e.wholes = append(e.wholes, w)
		}
	}
	e.denies()
	e.errs()
	e.never()
	e.needs()
	e.unused(units)
	return *e.out
}

// An effect gathers what a rule does to all objects of some kind.
type effect struct {
	l      *read.Lowering
	wholes []read.Whole
	out    *diag.List
}

// tell tells something of a place, once.
func (e effect) tell(at diag.Pos, code diag.Code, format string, args ...any) {
	if !slices.ContainsFunc(*e.out, func(d diag.Diagnostic) bool { return d.Pos == at && d.Code <= code }) {
		*e.out = append(*e.out, diag.Warnf(at, code, format, args...))
	}
}

// kinds are the kinds for which something is so of what the rule comes to, in each of their
// versions; "" where there is none.
func (e effect) kinds(is func(read.Whole) bool) string {
	var kinds []string
	for _, w := range e.wholes {
		kind := kindOf(w.Target)
		isNot := func(v read.Whole) bool { // of its version
			same := func(u read.Whole) bool { return u.Target.GVK == v.Target.GVK && is(u) }
			return kindOf(v.Target) == kind && !slices.ContainsFunc(e.wholes, same)
		}
		if !slices.Contains(kinds, kind) && !slices.ContainsFunc(e.wholes, isNot) {
			kinds = append(kinds, kind)
		}
	}
	return alternatives(kinds)
}

func alternatives(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// kindOf is the kind of a target, as a rule writes it.
func kindOf(t native.Target) string {
	switch {
	case t.IsAnyResource() || t.Parent.Kind == "":
		return "object"
	case t.Subresource != "":
		return t.Parent.Kind + "/" + t.Subresource
	}
	return t.Parent.Kind
}

// denies tells of kinds every object of which violates the pattern.
func (e effect) denies() {
	kinds := e.kinds(func(w read.Whole) bool {
		return !w.Holds.Expr.IsZero() && w.Holds.Expr.IsFalse() && !w.Holds.Errs && !w.Pre.Errs && slices.Contains(w.Operations, native.Create)
	})
	if kinds == "" || e.l.Rule.Validate.Pattern == nil { // a deny may well be meant so
		return
	}
	i := slices.IndexFunc(e.l.Findings.Decisions, func(d read.Decision) bool { return d.Pattern != nil && d.Never })
	if i < 0 {
		return
	}
	d := e.l.Findings.Decisions[i]
	e.tell(d.Pattern.Pos, diag.DeniesEvery, "every %s that the rule applies to violates it, so where it is enforced none can be created: %s; correct the pattern, or the kinds of the match",
		kinds, whyNever(d))
}

// whyNever says why nothing satisfies a part of a pattern.
func whyNever(d read.Decision) string {
	switch kind := d.Of.Kind(); {
	case d.Of.Never:
		return "none has the field that is asked for here"
	case d.Pattern.Kind == policy.List && len(d.Pattern.Items) == 0:
		return "nothing satisfies an empty list of a pattern"
	case kind == schema.Object || kind == schema.Map:
		return "what stands here is a map, which is never " + read.Shown(d.Pattern.Value())
	case kind == schema.List && d.Pattern.Kind == policy.Map:
		return "what stands here is a list, and no map"
	case kind == schema.Bool:
		return "what stands here is true or false, and never " + read.Shown(d.Pattern.Value())
	case kind == schema.Int || kind == schema.Number:
		return "what stands here is a number, and never " + read.Shown(d.Pattern.Value())
	case d.Pattern.Kind == policy.Map:
		return "what stands here is no map"
	case d.Pattern.Kind == policy.List:
		return "what stands here is no list"
	}
	return "nothing that can stand here is " + read.Shown(d.Pattern.Value())
}

// errs tells of kinds for which the rule is an error on every request of some operations.
func (e effect) errs() {
	kinds := e.kinds(func(w read.Whole) bool { return w.Unread })
	if kinds == "" {
		return
	}
	var ops []string
	for _, w := range e.wholes {
		for _, op := range w.Operations {
			if w.Unread && !slices.Contains(ops, string(op)) {
				ops = append(ops, string(op))
			}
		}
	}
	why, remedy := "it reads what none of these requests has", "correct what is read, or give it a default"
	if e.l.Rule.Validate.PodSecurity != nil {
		why, remedy = "podSecurity knows only Pods and their controllers", "correct the kinds of the match"
	}
	e.tell(e.l.Rule.Pos, diag.ErrsAlways, "the rule is an error on every %s of a %s that it matches, for %s: %s; %s",
		alternatives(ops), kinds, why, e.whenErring("each of them"), remedy)
}

// whenErring says what becomes of requests on which the rule is an error.
func (e effect) whenErring(requests string) string {
	switch {
	case len(native.OverridesOf(e.l.Policy, e.l.Rule)) > 0:
		return "where it is enforced and errors are not ignored, " + requests + " is denied"
	case read.Action(e.l) != policy.Enforce:
		return "where it is enforced, " + requests + " is denied"
	case e.l.Policy.FailurePolicy == policy.Ignore:
		return requests + " is let through, for errors are ignored"
	}
	return requests + " is denied"
}

// never tells of conditions about the object, and parts of the pattern, that hold in no walk.
func (e effect) never() {
	may := map[diag.Pos]bool{}
	for _, d := range e.l.Findings.Decisions {
		may[posOf(d)] = may[posOf(d)] || !d.Never || !isOwnFault(d)
	}
	for _, d := range e.l.Findings.Decisions {
		switch {
		case may[posOf(d)]:
		case d.Pattern != nil:
			e.tell(d.Pattern.Pos, diag.NeverSatisfied, "nothing satisfies this, whatever the object has: %s; ask for what can be there, or for another field", whyNever(d))
		default:
			e.tell(d.Condition.Pos, diag.NeverSatisfied, "this condition never holds, whatever the object has; compare with a value of the type that the key has, or read another field")
		}
	}
}

func posOf(d read.Decision) diag.Pos {
	if d.Condition != nil {
		return d.Condition.Pos
	}
	return d.Pattern.Pos
}

// isOwnFault tells that what never holds is about the object, and not for a field that it does
// not have, of which UnknownField tells, nor for a part below.
func isOwnFault(d read.Decision) bool {
	if d.Condition != nil {
		key := d.Condition.Key
		return key != nil && key.Kind == policy.String && slices.ContainsFunc([]string{"request.object", "request.oldObject", "element"}, func(name string) bool { return query.Mentions(key.Str, name) })
	}
	kind := d.Of.Kind()
	switch {
	case d.Of.Never:
		return false
	case d.Pattern.Kind == policy.Map:
		return kind != schema.Object && kind != schema.Map && kind != schema.Any
	case d.Pattern.Kind == policy.List:
		return kind != schema.List && kind != schema.Any || len(d.Pattern.Items) == 0
	}
	return true
}

// needs tells of preconditions that are an error for objects without some field.
func (e effect) needs() {
	kinds := e.kinds(func(w read.Whole) bool { return len(w.Needed) > 0 })
	var needed [][]string
	for _, w := range e.wholes {
		needed = append(needed, w.Needed...)
	}
	for _, d := range e.l.Findings.Decisions {
		if d.Condition == nil || !d.Is.Errs {
			continue
		}
		where, ok := e.l.WhereRead(d.Is)
		if !ok {
			continue
		}
		for _, path := range slices.Backward(askedOf(where)) {
			if slices.ContainsFunc(needed, func(n []string) bool { return slices.Equal(n, path) }) {
				e.tell(d.Condition.Pos, diag.OptionalField, "the precondition is an error on every %s without %s, and not false: %s; write a default behind what is read, as in || ''",
					kinds, strings.Join(path, "."), e.whenErring("each such object"))
			}
		}
	}
}

// unused tells of the kinds that the rule names and can deny nothing of. Where it can deny nothing
// at all for what it asks, NeedsNoObject says so.
func (e effect) unused(units []pack.Unit) {
	if e.l.Rule.Expansion != "" {
		return
	}
	for _, f := range query.Filters(e.l.Rule.Match) {
		for _, k := range f.Kinds {
			if why, met := e.whyUnused(k, units); why != "" && (len(units) > 0 || !met) {
				e.tell(k.Pos, diag.UnusedKind, "the rule can deny no %s: %s; take the kind out of the match, or correct that", k.Value, why)
			}
		}
	}
}

// whyUnused says why no unit is about a kind, and whether some request meets the match; "" where
// a unit is about it, or where something else says why.
func (e effect) whyUnused(k policy.Text, units []pack.Unit) (why string, met bool) {
	targets := read.Targets(e.l.Quietly(), k)
	if _, ok := policy.ParseKind(k.Value); !ok {
		return "no kind is called so; one with its group is written group/version/Kind", false
	}
	if len(targets) == 0 {
		return "", false // of which GuessedResource tells
	}
	why = "no request for it has an operation of the match"
	for _, t := range targets {
		if slices.ContainsFunc(units, func(u pack.Unit) bool { return u.Target.Key() == t.Key() }) {
			return "", true
		}
		for _, w := range e.l.Findings.Wholes {
			switch {
			case w.Target.Key() != t.Key():
			case w.Match.IsFalse():
				if !met {
					why = "none meets the rest of the match"
				}
			case !w.Pre.Errs && w.Pre.Expr.IsFalse():
				why, met = "the preconditions hold for none", true
			case !w.Holds.Errs && w.Holds.Expr.IsTrue():
				why, met = "each satisfies what the rule asks for, whatever is in it", true
			default:
				return "", true
			}
		}
	}
	return why, met
}

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
