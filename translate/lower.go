package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// A unit is a rule lowered for one target and some operations.
type unit struct {
	policy *policy.Policy
	rule   *policy.Rule
	target target
	ops    []string

	match     cel.Bool   // what the resource rules do not say
	pre       truthValue // preconditions
	holds     truthValue // the rule does not fail
	exempt    cel.Bool   // an old violation excuses this one; false where there is no such excuse
	namespace bool       // match reads namespaceObject, so it cannot be a match condition
	message   message
	variables []variable
	params    *paramUse
	native    *nativeParts // what a CEL rule brings along
}

// lowerRule lowers one rule, as written or expanded, for every target and
// operation; a refusal is the reason why it has no native form.
func lowerRule(p *policy.Policy, r *policy.Rule, o *Options) (units []unit, notes diag.List, why *diag.Diagnostic) {
	defer func() {
		if v := recover(); v != nil {
			ref, ok := v.(refusal)
			if !ok {
				panic(v)
			}
			why = &ref.Diagnostic
		}
	}()
	base := &lowering{b: &binders{}, opts: o, release: release(o.Release), policy: p, rule: r, pos: r.Pos, notes: &notes}
	base.context = contextOf(r.Context, nil)
	base.checkOverrides()
	for _, t := range base.ruleTargets() {
		units = append(units, base.lowerTarget(t)...)
	}
	return units, notes, refusedUnits(units, o, &notes)
}

// ruleTargets are the targets of all kinds of the match block, each once.
func (l *lowering) ruleTargets() []target {
	var out []target
	seen := map[string]bool{}
	for _, f := range filters(l.rule.Match) {
		for _, k := range f.Kinds {
			for _, t := range l.targets(k) {
				if !seen[t.key()] {
					seen[t.key()] = true
					out = append(out, t)
				}
			}
		}
		if len(f.Kinds) == 0 && !isEmpty(f) {
			panic(l.refuse(diag.NoKinds, "a filter without kinds matches every kind, which no narrow resource rule can say"))
		}
	}
	return out
}

// lowerTarget lowers the rule for one target. Operations that it treats alike
// stay together.
func (l *lowering) lowerTarget(t target) []unit {
	var out []unit
	for _, ops := range l.operations(t) {
		u, ok := l.unit(t, ops)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(out, func(v unit) bool { return v.same(u) }); i >= 0 {
			out[i].ops = append(out[i].ops, u.ops...)
			continue
		}
		out = append(out, u)
	}
	for i := range out {
		l.excuse(&out[i])
	}
	return out
}

// operations are the classes of operations that the rule may treat differently.
// Patterns and pod security say nothing about a deletion, but preconditions are
// evaluated before that, and may be an error.
func (l *lowering) operations(t target) [][]string {
	var all []string
	v := l.rule.Validate
	for _, op := range t.ops() {
		if op == "DELETE" && l.rule.Preconditions == nil && v.Deny == nil && l.passesDeletion(v) {
			continue
		}
		if l.someFilterHas(op) {
			all = append(all, op)
		}
	}
	if l.dependsOnOperation() {
		var out [][]string
		for _, op := range all {
			out = append(out, []string{op})
		}
		return out
	}
	var out [][]string
	var writes []string
	for _, op := range all {
		if op == "CREATE" || op == "UPDATE" {
			writes = append(writes, op)
		} else {
			out = append(out, []string{op})
		}
	}
	if len(writes) > 0 {
		out = append([][]string{writes}, out...)
	}
	return out
}

// passesDeletion tells whether a body has nothing to say of a deletion. The
// variables of a pattern are filled in all the same, which may be an error.
func (l *lowering) passesDeletion(v *policy.Validate) bool {
	switch {
	case v.Pattern != nil:
		return !hasVariables(v.Pattern)
	case v.AnyPattern != nil:
		return !hasVariables(v.AnyPattern)
	}
	return v.PodSecurity != nil
}

func (l *lowering) someFilterHas(op string) bool {
	return slices.ContainsFunc(filters(l.rule.Match), func(f *policy.Filter) bool {
		return len(f.Operations) == 0 || slices.Contains(f.Operations, op)
	})
}

// dependsOnOperation tells whether CREATE and UPDATE may differ to the rule.
func (l *lowering) dependsOnOperation() bool {
	for _, f := range append(filters(l.rule.Match), filters(l.rule.Exclude)...) {
		if len(f.Operations) > 0 {
			return true
		}
	}
	source := l.rule.Source
	if l.rule.Validate.CEL != nil { // CEL itself takes any operation as it comes
		source = source.Get("preconditions")
	}
	asks := func(s string) bool {
		return strings.Contains(s, "operation") || strings.Contains(s, "oldObject")
	}
	return mentions(source, asks) || slices.ContainsFunc(l.opts.Exceptions, func(e *policy.Exception) bool {
		return l.excepts(e) && mentions(e.Source, asks)
	})
}

// mentions tells whether some string below n satisfies f.
func mentions(n *policy.Node, f func(string) bool) bool {
	if n == nil {
		return false
	}
	if n.Kind == policy.String {
		return f(n.Str)
	}
	for _, item := range n.Items {
		if mentions(item, f) {
			return true
		}
	}
	for _, field := range n.Fields {
		if mentions(field.Value, f) {
			return true
		}
	}
	return false
}

// unit lowers the rule for a target and operations; false where it cannot fail.
func (l *lowering) unit(t target, ops []string) (unit, bool) {
	w := l.walk(t, ops)
	u := unit{policy: l.policy, rule: l.rule, target: t, ops: ops, exempt: cel.False()}
	u.match = w.applies()
	if u.match.IsFalse() {
		return u, false
	}
	u.pre = w.conditions(l.rule.Preconditions)
	if excepted := w.unlessExcepted(); u.pre.errs { // which no exception is from
		u.pre = u.pre.andThen(truthValue{b: excepted})
	} else {
		u.match = cel.And(u.match, excepted)
	}
	u.namespace = w.usesNamespace
	if u.pre.b.IsFalse() && !u.pre.errs {
		return u, false
	}
	u.holds = w.body(&u)
	u.holds.b = w.fuse(u.holds.b.Simplify())
	if u.holds.b.IsTrue() && !u.holds.errs && !u.pre.errs {
		return u, false
	}
	u.message = w.message(l.rule.Validate.Message)
	if u.native == nil {
		w.nameOffenders(&u)
	}
	w.nameControls(&u)
	u.variables, u.params = w.variables, w.params
	w.noteCost(u)
	return u, true
}

// walk is a lowering for a target and operations, with its objects in place.
func (l *lowering) walk(t target, ops []string) *lowering {
	w := *l
	w.b, w.target, w.ops = &binders{}, t, ops
	w.context = contextOf(l.rule.Context, nil)
	typ := w.rootType(t)
	w.object, w.old = valOf(at(cel.Ident("object"), typ)), valOf(at(cel.Ident("oldObject"), typ))
	switch {
	case w.on("DELETE"):
		w.object = litOf(nil)
	case !w.on("UPDATE"):
		w.old = litOf(nil)
	case w.on("CREATE"):
		w.old = litOf(nil) // nobody asks: see dependsOnOperation
	}
	return &w
}

// same tells whether two units of a rule differ in their operations only.
func (u unit) same(v unit) bool { return u.text() == v.text() }

// text is everything that the unit's expressions say.
func (u unit) text() string {
	parts := []string{u.match.String(), u.pre.b.String(), u.holds.b.String(), u.exempt.String(), u.message.key(), u.params.key(), u.native.key()}
	for _, v := range u.variables {
		parts = append(parts, v.name, v.expr.String())
	}
	return strings.Join(parts, "\x00")
}

// body is: the rule's validate block does not fail.
func (l *lowering) body(u *unit) truthValue {
	v := l.rule.Validate
	l.at(v.Pos)
	switch {
	case v.Manifests != nil:
		panic(l.refuse(diag.Manifests, "signed manifests are verified outside the API server"))
	case v.PodSecurity != nil:
		return l.effect(func() cel.Bool { return l.podSecurity(v.PodSecurity) })
	case v.CEL != nil:
		return l.celRule(v.CEL, u)
	case v.Deny != nil:
		return l.conditionsOf(v.Deny).not()
	case v.Pattern != nil:
		return l.pattern(v.Pattern)
	case v.AnyPattern != nil:
		return l.anyPattern(v.AnyPattern)
	case v.ForEach != nil:
		return l.forEachAll(v.ForEach, 0)
	}
	return truthValue{b: cel.True()} // assert has no effect
}

func (l *lowering) conditionsOf(d *policy.Deny) truthValue {
	l.at(d.Pos)
	if l.prior { // an error is no violation of the old object
		return l.preOfElement(d.Conditions)
	}
	return l.conditions(d.Conditions) // no conditions are true: deny always
}

// pattern is: the object does not fail the pattern. A pattern says nothing about
// a deletion.
func (l *lowering) pattern(p *policy.Node) truthValue {
	v, ok := l.patternSubject()
	if !ok {
		return l.filledIn(p)
	}
	l.noteIgnoredAnchors(p)
	l.refuseMetadata(p)
	if p, ok = l.dereferenced(p); !ok {
		return l.alwaysErrs("reference")
	}
	return l.needing(func() cel.Bool { return l.match(v, l.substituted(p), "").admitted() })
}

// filledIn is true, and an error where the pattern's variables are one: a pattern
// says nothing of a deletion, but Kyverno fills it in before it sees that.
func (l *lowering) filledIn(p *policy.Node) truthValue {
	p, ok := l.dereferenced(p)
	if !ok {
		return l.alwaysErrs("reference")
	}
	return l.needing(func() cel.Bool { l.substituted(p); return cel.True() })
}

// noteIgnoredAnchors tells where a violation is an error to Kyverno, which a
// policy that ignores errors admits (deviation 2).
func (l *lowering) noteIgnoredAnchors(p *policy.Node) {
	if l.policy.FailurePolicy == policy.Ignore && tracksAnchors(p) {
		l.at(p.Pos)
		l.note(diag.IgnoredAnchor, "where an anchor's key is nowhere in the object, Kyverno calls a violation an error and ignores it; here it is a violation")
	}
}

// tracksAnchors tells whether a pattern has a conditional or existence anchor.
func tracksAnchors(p *policy.Node) bool {
	for _, f := range p.Fields {
		if kind, _ := splitAnchor(f.Key); kind == conditional || kind == existence || tracksAnchors(f.Value) {
			return true
		}
	}
	return slices.ContainsFunc(p.Items, tracksAnchors)
}

// anyPattern is: some pattern is satisfied, or none fails.
func (l *lowering) anyPattern(p *policy.Node) truthValue {
	v, ok := l.patternSubject()
	if !ok {
		return l.filledIn(p)
	}
	if p.Kind == policy.List && len(p.Items) == 0 {
		return truthValue{b: cel.True()}
	}
	if p.Kind != policy.List {
		panic(l.unsupported("an anyPattern that is no list"))
	}
	for _, item := range p.Items {
		l.refuseMetadata(item)
	}
	if p, ok = l.dereferenced(p); !ok {
		return l.alwaysErrs("reference")
	}
	return l.needing(func() cel.Bool { return l.someSatisfied(v, p.Items) })
}

// someSatisfied is: some pattern is satisfied, or none fails.
func (l *lowering) someSatisfied(v val, patterns []*policy.Node) cel.Bool {
	var oks, admits []cel.Bool
	skips := true
	for _, p := range patterns {
		o := l.match(v, l.substituted(p), "")
		oks = append(oks, o.ok())
		admits = append(admits, o.admitted())
		skips = skips && o.skips()
	}
	if !skips { // all skipped is impossible
		return cel.Or(oks...)
	}
	return cel.Or(append(oks, cel.And(admits...))...)
}

// patternSubject is the value that a pattern is held against: the foreach element
// in scope, or the object.
func (l *lowering) patternSubject() (val, bool) {
	j := l.object
	if l.element != nil {
		j = *l.element
	}
	if j.form != valForm {
		return val{}, false
	}
	return j.v.settled(), true
}

// substituted is a pattern with its variables replaced, which is possible where
// their values are known when compiling.
func (l *lowering) substituted(p *policy.Node) *policy.Node {
	if !hasVariables(p) {
		return p
	}
	switch p.Kind {
	case policy.String:
		l.at(p.Pos)
		t := l.parseTemplate(p.Str, p.Pos)
		j := l.template(t)
		if j.form != litForm {
			return l.runtimeLeaf(p, t, j)
		}
		return nodeOf(j.lit, p.Pos)
	case policy.List:
		out := *p
		out.Items = make([]*policy.Node, len(p.Items))
		for i, item := range p.Items {
			out.Items[i] = l.substituted(item)
		}
		return &out
	}
	out := *p
	out.Fields = make([]policy.Field, len(p.Fields))
	for i, f := range p.Fields {
		key, ok := l.template(l.parseTemplate(f.Key, f.Pos)).lit.(string)
		if !ok {
			l.at(f.Pos)
			panic(l.refuse(diag.PatternVariable, "a pattern's key that is only known at run time, %q", f.Key))
		}
		out.Fields[i] = policy.Field{Key: key, Pos: f.Pos, Value: l.substituted(f.Value)}
	}
	return &out
}

func nodeOf(v any, pos diag.Pos) *policy.Node {
	n := &policy.Node{Pos: pos}
	switch v := v.(type) {
	case bool:
		n.Kind, n.Bool = policy.Bool, v
	case float64:
		n.Kind, n.Float = policy.Float, v
		if v == float64(int64(v)) {
			n.Kind, n.Int = policy.Int, int64(v)
		}
	case string:
		n.Kind, n.Str = policy.String, v
	case []any:
		n.Kind = policy.List
		for _, item := range v {
			n.Items = append(n.Items, nodeOf(item, pos))
		}
	case map[string]any:
		n.Kind = policy.Map
		for _, k := range sortedKeys(v) {
			n.Fields = append(n.Fields, policy.Field{Key: k, Pos: pos, Value: nodeOf(v[k], pos)})
		}
	}
	return n
}
