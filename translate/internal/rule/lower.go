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
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/pattern"
	"github.com/kvap/kvap/translate/internal/podsec"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// Lower lowers one rule, as written or expanded, for every target and
// operation; a refusal is the reason why it has no native form.
func Lower(p *policy.Policy, r *policy.Rule, conditions []vap.Condition, o *api.Options) (out LoweredPart) {
	base := &read.Lowering{Opts: o, Release: read.Release(o.Release), Policy: p, Rule: r, PolicyConditions: conditions, Pos: r.Pos, Notes: &out.Notes, Findings: &read.Findings{}, Gathered: read.NewGathered()}
	out.Why = RefusalOf(base, func() {
		match.CheckOverrides(base)
		targets := Targets(base)
		units := withoutExcused(base, lowerTargets(base, targets))
		match.NoteUnasked(base, units)
		asTemplates(base, units)
		match.NoteDefaultFilters(base, targets)
		match.NoteOwnObjects(base, units)
		out.Units, out.Effects = units, effects(base, units)
	})
	if out.Why == nil {
		out.Why = celrule.RefusedUnits(out.Units, o, &out.Notes)
	}
	return out
}

// RefusalOf lowers something. It returns why that has no native form, if it has none.
func RefusalOf(l *read.Lowering, lower func()) (why *diag.Diagnostic) {
	defer func() {
		if v := recover(); v != nil {
			ref, ok := v.(read.Refusal)
			if _, grown := v.(cel.TooLarge); grown {
				ref, ok = read.TooLarge(l.Rule.Pos), true
			}
			if !ok {
				panic(v)
			}
			why = &ref.Diagnostic
		}
	}()
	lower()
	return nil
}

// Targets are the targets of all kinds of the match block, each once.
func Targets(l *read.Lowering) []native.Target {
	var out []native.Target
	seen := map[string]bool{}
	for _, f := range query.Filters(l.Rule.Match) {
		for _, k := range f.Kinds {
			for _, t := range read.Targets(l, k) {
				if !seen[t.Key()] {
					seen[t.Key()] = true
					t.Body = read.ObjectType(l, t)
					out = append(out, t)
				}
			}
		}
		if len(f.Kinds) == 0 && !match.IsEmpty(f) {
			panic(l.Refuse(diag.NoKinds, "a filter without kinds matches every kind, which no narrow resource rule can say"))
		}
	}
	if guessed, ok := read.Guessed(l); ok {
		if len(out) == 0 {
			panic(read.Refusal{Diagnostic: guessed})
		}
		*l.Notes = append(*l.Notes, guessed)
	}
	return out
}

// lowerTargets lowers the rule for each target.
func lowerTargets(l *read.Lowering, targets []native.Target) []pack.Unit {
	var out []pack.Unit
	for _, units := range eachByItself(l, len(targets), func(one *read.Lowering, i int) []pack.Unit { return lowerTarget(one, targets[i]) }) {
		for _, u := range units {
			out = append(out, u.Sharing(out))
		}
	}
	return out
}

// lowerTarget lowers the rule for one target. Operations that it treats alike
// stay together.
func lowerTarget(l *read.Lowering, t native.Target) []pack.Unit {
	var out []pack.Unit
	operations := query.Operations(l, t)
	for _, units := range eachByItself(l, len(operations), func(one *read.Lowering, i int) []pack.Unit {
		return ForOperations(one, operations[i], func(ops []native.Operation) (pack.Unit, bool) { return unit(one, t, ops) })
	}) {
		for _, u := range units {
			if i := slices.IndexFunc(out, func(v pack.Unit) bool { return v.Same(u) }); i >= 0 {
				out[i].Operations = append(out[i].Operations, u.Operations...)
				continue
			}
			out = append(out, u)
		}
	}
	for i := range out {
		excuse(l, &out[i])
	}
	return out
}

// eachByItself lowers n parts, each by a lowering of its own, and tells what they tell in their
// order.
func eachByItself(l *read.Lowering, n int, lower func(one *read.Lowering, i int) []pack.Unit) [][]pack.Unit {
	of := make([][]pack.Unit, n)
	for i := range of {
		one := *l
		one.Notes, one.Gathered = new(diag.List), read.NewGathered()
		if why := RefusalOf(&one, func() { of[i] = lower(&one, i) }); why != nil {
			panic(read.Refusal{Diagnostic: *why})
		}
		*l.Notes = append(*l.Notes, *one.Notes...)
	}
	return of
}

// ForOperations is what a walk makes for operations, where it does not tell them apart, or
// else what it makes for each; nothing where it makes nothing.
func ForOperations[T any](l *read.Lowering, ops []native.Operation, walk func(ops []native.Operation) (T, bool)) []T {
	var out []T
	stop := l.Attempt(func() {
		if one, ok := walk(ops); ok {
			out = append(out, one)
		}
	})
	switch stop.(type) {
	case nil:
		return out
	case read.PerOperation:
		for _, op := range ops {
			out = append(out, ForOperations(l, []native.Operation{op}, walk)...)
		}
		return out
	}
	panic(stop)
}

// unit lowers the rule for a target and operations; false where it cannot fail.
func unit(l *read.Lowering, t native.Target, ops []native.Operation) (pack.Unit, bool) {
	w := Walk(l, t, ops)
	u := pack.Unit{Policy: l.Policy, Rule: l.Rule, Conditions: l.PolicyConditions, Target: t, Operations: ops, Exempt: cel.False(), Reaches: match.Reaches(l.Opts, l.Policy, l.Rule)}
	u.NamespaceSelector = native.PlainSelector(w.Selected)
	var asked bool
	if u.Match, u.Pre, asked = Asked(w); !asked {
		found(w, u.Match, u.Pre, partial.Bool{})
		return u, false
	}
	w.Trace("what the match asks beside kinds and operations", u.Match.String)
	w.TraceBool("what the preconditions ask", u.Pre)
	u.ReadsNamespace = w.UsesNamespace
	holds := body(w, &u)
	w.TraceBool("the rule holds where", holds)
	u.Holds = celrule.Simplified(w, holds, w.Environment)
	u.Holds.Expr = fuse(w, u.Holds.Expr)
	w.Trace("the same, shortened", u.Holds.Expr.String)
	found(w, u.Match, u.Pre, u.Holds)
	u.Tells = w.Tells
	if u.Holds.Expr.IsTrue() && !u.Holds.Errs && (!u.Pre.Errs || celrule.IsTotal(w, u.Pre.Expr)) {
		return u, false
	}
	if u.Message.Expr == nil && !nameElement(w, &u) {
		u.Message = message(w, l.Rule.Validate.Message)
		if u.CEL == nil {
			nameOffenders(w, &u)
		}
	}
	podsec.NameControls(w, &u)
	u.Variables, u.Params = w.Variables, w.Params
	noteCost(w, u)
	return u, true
}

// Asked is what a rule asks before its body, its match and its preconditions; false where
// nothing meets both.
func Asked(w *read.Lowering) (applies cel.Bool, pre partial.Bool, ok bool) {
	if applies = match.Applies(w); applies.IsFalse() {
		return applies, pre, false
	}
	pre = celrule.Simplified(w, condition.Conditions(careful(w), w.Rule.Preconditions), w.Environment)
	if excepted := match.UnlessExcepted(w); pre.Errs { // which no exception is from
		pre = pre.Then(partial.Sure(excepted))
	} else {
		applies = cel.And(applies, excepted)
	}
	return applies, pre, !pre.Expr.IsFalse() || pre.Errs
}

// careful is the walk for preconditions: those of what a cleanup policy deletes are read as an
// exception's are.
func careful(w *read.Lowering) *read.Lowering {
	if !w.Rule.Deletes {
		return w
	}
	of := *w
	of.Exception = true
	return &of
}

// Walk is a lowering for a target and operations, which has gathered nothing yet.
func Walk(l *read.Lowering, t native.Target, ops []native.Operation) *read.Lowering {
	w := *l
	w.Gathered = read.NewGathered()
	w.Environment = environmentOf(l, t, ops)
	w.Selected = match.OwnSelector(&w)
	return &w
}

// environmentOf is the environment of a rule, with its objects in place.
func environmentOf(l *read.Lowering, t native.Target, ops []native.Operation) read.Environment {
	typ := read.ObjectType(l, t)
	e := read.Environment{Binders: &cel.Scope{}, Target: t, Ops: ops, Context: query.ContextOf(l.Rule.Context, read.Context{})}
	e.Object, e.Old = read.ValueOf(cel.Ident("object"), typ), read.ValueOf(cel.Ident("oldObject"), typ)
	switch {
	case e.On(native.Delete):
		e.Object = read.LitOf(nil)
	case !e.On(native.Update):
		e.Old = read.LitOf(nil)
	case e.On(native.Create):
		e.Old = read.LitOf(nil) // nobody asks: see ofOneOperation
	}
	return e
}

// body is: the rule's validate block does not fail.
func body(l *read.Lowering, u *pack.Unit) partial.Bool {
	v := l.Rule.Validate
	l.SetPos(v.Pos)
	switch {
	case l.Rule.VerifyImages != nil:
		return imagesHaveDigests(l, u)
	case v.Manifests != nil:
		panic(l.Refuse(diag.Manifests, "signed manifests are verified outside the API server"))
	case v.PodSecurity != nil:
		return podsec.Holds(l, v.PodSecurity)
	case v.CEL != nil:
		return celrule.Holds(l, v.CEL, u)
	case v.Deny != nil:
		return denied(l, v.Deny).Not()
	case v.Pattern != nil:
		return pattern.Holds(l, v.Pattern)
	case v.AnyPattern != nil:
		return pattern.AnyPattern(l, v.AnyPattern)
	case v.ForEach != nil:
		return forEachAll(l, v.ForEach, 0)
	}
	return partial.Sure(cel.True()) // assert has no effect
}

// denied is: what a deny asks holds. No conditions are true: deny always.
func denied(l *read.Lowering, d *policy.Deny) partial.Bool {
	l.SetPos(d.Pos)
	return condition.Conditions(l, d.Conditions)
}

// noteCost tells of a rule that the API server would stop evaluating on an object
// as large as the estimate assumes: the rule itself, or a variable of it.
func noteCost(l *read.Lowering, u pack.Unit) {
	const perExpression = 1_000_000
	most := cel.Cost(u.Holds.Expr.Value, nil)
	for _, v := range u.Variables {
		most = max(most, cel.Cost(v.Expr, nil))
	}
	if most > perExpression {
		l.SetPos(l.Rule.Pos)
		l.Note(diag.Costly, "the rule goes through lists inside lists; by estimate a large object may cost more than the API server allows, which counts as an error; kvap check says how much, and what objects cost when measured")
	}
}

// A LoweredPart is what became of a form of a rule, or of a part of one: units and what
// is to be told, or why there is no native form.
type LoweredPart struct {
	Units []pack.Unit
	Notes diag.List
	// Effects are what the rule does to every object of a kind.
	Effects diag.List
	Why     *diag.Diagnostic
}

// DependentRules is why the rules of a policy cannot be judged apart: with applyRules:
// One, a rule counts only when those before it did not apply.
func DependentRules(p *policy.Policy) *diag.Diagnostic {
	if !p.ApplyOne || len(p.Rules) < 2 {
		return nil
	}
	d := diag.Warnf(p.Pos, diag.ApplyOne, "applyRules: One makes a rule depend on the verdict of those before it; the webhook will judge this policy")
	return &d
}

// A rule about Pods and what it is expanded to read the same of a Pod and of the template of
// a controller, but that a Pod has metadata and a template may have none:
//
//	object.metadata.?labels                  of a Pod
//	object.spec.template.?metadata.?labels   of a Deployment
//
// asTemplates adds to units about Pods what they would be if a Pod's metadata might not be
// there, so that both can share an object.
func asTemplates(l *read.Lowering, units []pack.Unit) {
	if l.Opts.Pack == api.PackMatch || l.Rule.Expansion != "" || l.Rule.Validate.CEL != nil || !l.Policy.Expands(l.Rule) {
		return
	}
	for i, u := range units {
		if u.Target.Parent != (schema.GVK{Version: "v1", Kind: "Pod"}) || !u.Reads("object", "metadata") && !u.Reads("oldObject", "metadata") {
			continue
		}
		one := *l
		one.Notes, one.Gathered, one.OfTemplate = &diag.List{}, read.NewGathered(), true
		var as []pack.Unit
		if RefusalOf(&one, func() { as = withoutExcused(&one, lowerTarget(&one, u.Target)) }) != nil {
			continue
		}
		k := slices.IndexFunc(as, func(v pack.Unit) bool { return slices.Equal(v.Operations, u.Operations) })
		if k >= 0 {
			units[i].Template = &as[k]
		}
	}
}

// AsValidation is a rule that verifies images as one that validates, where all that it asks of
// any image is a digest. Another rule stays what it is.
//
//	verifyImages:
//	- imageReferences: ["*"]
//	  mutateDigest: false
//	  verifyDigest: true
//	  required: false
func AsValidation(r *policy.Rule) *policy.Rule {
	asked := false
	for _, v := range r.VerifyImages {
		switch {
		case len(v.Attestors)+len(v.Attestations)+len(v.Skip) > 0 || v.Validate != nil || v.Credentials != nil,
			v.MutateDigest || v.Required || !slices.Contains(v.References, "*"):
			return r
		}
		asked = asked || v.VerifyDigest
	}
	if _, more := r.VerifiesMore(); more || !asked || r.Preconditions != nil || r.ImageExtractors != nil {
		return r
	}
	out := *r
	first := r.VerifyImages[0]
	out.Validate = &policy.Validate{Pos: first.Pos, Action: r.ImageAction(), Message: policy.Text{Pos: first.Pos, Value: "an image has no digest"}}
	return &out
}

// imagesHaveDigests is: each image of the object has a digest. No such rule excuses an update of
// what violated it before, but one of an object that is being deleted.
func imagesHaveDigests(l *read.Lowering, u *pack.Unit) partial.Bool {
	bad, ok := query.WithoutDigest(l)
	if !ok {
		return partial.Sure(cel.True())
	}
	u.Message.Text = l.Rule.Validate.Message.Value
	named := cel.String("no reference with a digest: ").Plus(bad.Call(cel.FuncJoin, cel.String(", ")))
	u.Message.Expr = &named
	return partial.Sure(cel.Or(query.GoesWithImages(l), bad.Size().Eq(cel.Int(0))))
}

// fuse makes one loop of those that say the same of several lists, as of a pod's
// containers of all three kinds, and of those that go through one list. The joined list
// is a variable: it is made once, however many rules go through it.
func fuse(l *read.Lowering, b cel.Bool) cel.Bool {
	b = b.Fuse(func(list cel.Value) bool { return query.ListType(l, list) != nil }, func(lists []cel.Value) cel.Value { return query.JoinLists(l, lists) })
	if joined := b.JoinLoops(); !cel.Equal(joined.Value, b.Value) {
		b = joined.Simplify()
	}
	return b.HoistLoops(func(v cel.Value) cel.Value { return nameLoop(l, v) }).AsBool()
}

// nameLoop is a variable for a loop that stands inside of another one, and says
// the same of every element of that.
func nameLoop(l *read.Lowering, v cel.Value) cel.Value {
	word := read.Singular(v.LastField())
	return read.Let(l, "related"+strings.ToUpper(word[:1])+word[1:]+"s", v)
}
