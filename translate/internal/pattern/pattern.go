package pattern

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// The outcome of a pattern follows the overlay engine step by step
// (docs/semantics.md, patterns). A missing value is matched as null.

// match says what pattern p finds at v, where v may be missing.
func match(l *read.Lowering, v read.Place, p *policy.Node, hint string) outcome {
	read.Step(l)
	if p.Kind == policy.Map || p.Kind == policy.List {
		return boundedOutcome(l, matchOr(l, v, p, false, hint))
	}
	return matchOr(l, v, p, compare.NullSatisfies(l, p), hint)
}

// matchOr is match with another verdict, ok, for a value that is not there:
// the equality anchor wants true. The verdict counts for all of v's guards.
func matchOr(l *read.Lowering, v read.Place, p *policy.Node, ok bool, hint string) outcome {
	switch p.Kind {
	case policy.Map:
		return noted(l, v, p, matchMap(l, v, p, ok))
	case policy.List:
		return noted(l, v, p, matchList(l, v, p, ok, hint))
	}
	out := cel.Bool{}
	if compare.IsRuntime(l, p) {
		out = compare.RuntimeScalar(l, v, p, ok)
	} else {
		out = compare.Scalar(l, v, p, ok)
	}
	l.TraceAt(p.Pos, "value", read.OperandAt(v).Described)
	l.TraceAt(p.Pos, read.Shown(p.Value()), out.String)
	return noted(l, v, p, check(out))
}

// noted is what a part of a pattern finds, for who asks what no value satisfies.
func noted(l *read.Lowering, v read.Place, p *policy.Node, o outcome) outcome {
	l.DecidePattern(v, p, slices.ContainsFunc(o, func(s step) bool { return s.cond.IsFalse() }))
	return o
}

// matchMap applies the pattern's keys.
func matchMap(l *read.Lowering, v read.Place, p *policy.Node, ok bool) outcome {
	if v.Never {
		return check(cel.Lit(ok))
	}
	switch v.Kind() {
	case schema.Object, schema.Map:
		if v.Certain() {
			return keys(l, v, p)
		}
		return behind(v, keys(l, v.Settled(), p), ok)
	case schema.Any:
		o := append(check(read.IsMap(v.Expr)), keys(l, v.Settled().AsMap(), p)...)
		return behind(v, o, ok)
	}
	return behind(v, check(cel.False()), ok)
}

// behind puts a place's guards before an outcome of its settled value.
func behind(v read.Place, o outcome, ok bool) outcome {
	if v.Certain() {
		return o
	}
	if ok {
		return o.when(v.Found())
	}
	return append(check(v.Found()), o...)
}

// keys applies a map pattern's keys in the engine's two phases.
func keys(l *read.Lowering, v read.Place, p *policy.Node) outcome {
	if v.Part == read.InLabels {
		p = textsOnly(p)
	}
	refuseTwice(l, p)
	first, second := phases(p)
	out := append(anchors(l, v, first), plainKeys(l, v, second)...)
	l.TraceAt(p.Pos, "a map of the pattern", out.String)
	return out
}

// refuseTwice refuses a field that has an existence anchor, an equality anchor with conditions
// below or, in a rule that excuses, a negation anchor, and is a key besides: whether a violation of
// the one excuses an update depends on what was seen of the other.
func refuseTwice(l *read.Lowering, p *policy.Node) {
	for _, f := range p.Fields {
		kind, key := anchor.Split(f.Key)
		if (kind == anchor.Existence || kind == anchor.Negation && l.OfOld() || kind == anchor.Equality && tracksAnchors(f.Value)) && slices.ContainsFunc(p.Fields, func(g policy.Field) bool {
			_, other := anchor.Split(g.Key)
			return other == key && g.Key != f.Key
		}) {
			l.SetPos(f.Pos)
			panic(l.Unsupported("an anchor of a field that is a key besides"))
		}
	}
}

// textsOnly is a pattern for labels or annotations as Kyverno reads it where the
// object has the map: keys whose value is no text are dropped. Beside a wildcard
// key they are kept; deviation 3.
func textsOnly(p *policy.Node) *policy.Node {
	out := *p
	out.Fields = nil
	for _, f := range p.Fields {
		if _, key := anchor.Split(f.Key); scalar.IsWild(key) {
			return p
		}
		if f.Value.Kind == policy.String {
			out.Fields = append(out.Fields, f)
		}
	}
	return &out
}

// phases sorts the keys: anchors in byte order; then the others, those with
// anchors somewhere below and the global ones in front, in reverse.
func phases(p *policy.Node) (first, second []policy.Field) {
	fields := slices.Clone(p.Fields)
	slices.SortFunc(fields, func(a, b policy.Field) int { return strings.Compare(a.Key, b.Key) })
	var back []policy.Field
	for _, f := range fields {
		switch kind, _ := anchor.Split(f.Key); {
		case kind == anchor.Plain && !hasAnchors(f.Value):
			back = append(back, f)
		case kind == anchor.Plain || kind == anchor.Global:
			second = append([]policy.Field{f}, second...)
		default:
			first = append(first, f)
		}
	}
	return first, append(second, back...)
}

func hasAnchors(p *policy.Node) bool {
	return someAnchor(p, func(kind anchor.Kind) bool { return kind != anchor.Plain })
}

// someAnchor tells whether some key of a pattern has an anchor that is asked for.
func someAnchor(p *policy.Node, is func(anchor.Kind) bool) bool {
	below := func(n *policy.Node) bool { return someAnchor(n, is) }
	return slices.ContainsFunc(p.Items, below) || slices.ContainsFunc(p.Fields, func(f policy.Field) bool {
		kind, _ := anchor.Split(f.Key)
		return is(kind) || below(f.Value)
	})
}

// anchors is phase one. Conditional anchors sort first, and a mismatch of one
// skips the map whatever the others say. A skip that an equality anchor passes
// on counts only when no anchor of this map applied.
func anchors(l *read.Lowering, v read.Place, fields []policy.Field) outcome {
	var out outcome
	var skippable []cel.Bool // what must hold for the equality anchors that can skip to apply
	applied := false         // some anchor applies whenever phase one does not fail
	for _, f := range fields {
		kind, key := anchor.Split(f.Key)
		switch kind {
		case anchor.Conditional:
			out = append(out, filter(Conditional(l, v, key, f.Value), false)...)
			applied = true
		case anchor.Negation:
			out = append(out, check(negation(l, v, key, f.Value))...)
			applied = true
		case anchor.Existence:
			out = append(out, check(existence(l, v, key, f.Value))...)
			applied = true
		case anchor.Equality:
			o := equality(l, v, key, f.Value)
			if !o.skips() {
				out = append(out, o...)
				applied = true
				continue
			}
			out = append(out, check(o.admitted())...)
			if slices.ContainsFunc(o, func(s step) bool { return s.direct }) {
				l.SetPos(f.Pos)
				panic(l.Unsupported("a global anchor right below an equality anchor"))
			}
			skippable = append(skippable, o.ok())
		}
	}
	if len(skippable) > 0 && !applied {
		out = append(out, filter(cel.Or(skippable...), false)...)
	}
	return out
}

// plainKeys is phase two.
func plainKeys(l *read.Lowering, v read.Place, fields []policy.Field) outcome {
	var out outcome
	for _, f := range fields {
		kind, key := anchor.Split(f.Key)
		switch {
		case kind == anchor.Global:
			out = append(out, filter(global(l, v, key, f.Value), true)...)
		case isWildKey(v, key):
			out = append(out, check(wildKey(l, v, anchor.Plain, key, f.Value))...)
		case f.Value.Kind == policy.String && f.Value.Str == "*":
			out = append(out, check(nonNull(v.Matched(key)))...)
		default:
			out = append(out, match(l, v.Matched(key), f.Value, key)...)
		}
	}
	return out
}

func nonNull(v read.Place) cel.Bool {
	if v.Dynamic() {
		return cel.And(v.Found(), cel.Not(read.IsNull(v.Expr)))
	}
	return v.Found()
}

// Conditional is: the key is there and its value satisfies p.
func Conditional(l *read.Lowering, v read.Place, key string, p *policy.Node) cel.Bool {
	if isWildKey(v, key) {
		return wildKey(l, v, anchor.Conditional, key, p)
	}
	return matchOr(l, v.Matched(key), p, false, key).ok()
}

// equality is: the key is missing or its value satisfies p.
func equality(l *read.Lowering, v read.Place, key string, p *policy.Node) outcome {
	if isWildKey(v, key) {
		return check(wildKey(l, v, anchor.Equality, key, p))
	}
	return matchOr(l, v.Matched(key), p, true, key)
}

// global is: the key is missing or its value satisfies p.
func global(l *read.Lowering, v read.Place, key string, p *policy.Node) cel.Bool {
	if isWildKey(v, key) {
		return wildKey(l, v, anchor.Global, key, p)
	}
	return matchOr(l, v.Matched(key), p, true, key).ok()
}

// negation is: the key is missing.
func negation(l *read.Lowering, v read.Place, key string, p *policy.Node) cel.Bool {
	if isWildKey(v, key) {
		return wildKey(l, v, anchor.Negation, key, p)
	}
	return cel.Not(v.Matched(key).Found())
}

// existence is: the key is missing, or each map of p is satisfied by some element.
func existence(l *read.Lowering, v read.Place, key string, p *policy.Node) cel.Bool {
	if isWildKey(v, key) {
		return wildKey(l, v, anchor.Existence, key, p)
	}
	child := v.Matched(key)
	if child.Never {
		return cel.True()
	}
	missing := cel.Not(child.Found())
	list := child.Settled()
	if p.Kind != policy.List || (list.Kind() != schema.List && !list.Dynamic()) {
		return missing
	}
	conds := []cel.Bool{}
	if list.Dynamic() {
		conds = append(conds, read.IsList(list.Expr))
	}
	for _, item := range p.Items {
		if item.Kind != policy.Map {
			return missing
		}
		conds = append(conds, l.Binders.Exists(list.Expr, read.Singular(key), func(x cel.Value) cel.Bool {
			return match(l, read.PlaceOf(x, list.Elem()), item, "").ok()
		}))
	}
	return cel.Or(missing, cel.And(conds...))
}

// matchList applies a list pattern; only its first element says how.
func matchList(l *read.Lowering, v read.Place, p *policy.Node, ok bool, hint string) outcome {
	if v.Never {
		return check(cel.Lit(ok))
	}
	if v.Kind() != schema.List && !v.Dynamic() || len(p.Items) == 0 {
		return behind(v, check(cel.False()), ok)
	}
	if v.Dynamic() {
		o := append(check(read.IsList(v.Expr)), elements(l, read.PlaceOf(v.Expr, &schema.Type{Kind: schema.List, Elem: read.AnyType()}), p, hint)...)
		return behind(v, o, ok)
	}
	if list, short := v.OrElse(cel.List()); short && ok && p.Items[0].Kind != policy.List {
		// an empty list satisfies every pattern that looks at all elements
		may := *v.Typ
		may.Filled = may.Filled && v.Certain()
		return elements(l, read.PlaceOf(list, &may), p, hint)
	}
	return behind(v, elements(l, v.Settled(), p, hint), ok)
}

func elements(l *read.Lowering, list read.Place, p *policy.Node, hint string) outcome {
	first := p.Items[0]
	switch first.Kind {
	case policy.List:
		panic(l.Unsupported("a pattern of a list of lists"))
	case policy.Map:
		return eachElement(l, list, first, hint)
	}
	return check(l.Binders.All(list.Expr, read.Singular(hint), func(x cel.Value) cel.Bool {
		if compare.IsRuntime(l, first) {
			return compare.RuntimeElement(l, read.PlaceOf(x, list.Elem()), first)
		}
		return compare.ScalarOne(l, read.PlaceOf(x, list.Elem()), first, false)
	}))
}

// eachElement applies one map pattern to every element. Elements may be skipped;
// when all are, the list is.
func eachElement(l *read.Lowering, list read.Place, p *policy.Node, hint string) outcome {
	var skips bool
	out := check(l.Binders.All(list.Expr, read.Singular(hint), func(x cel.Value) cel.Bool {
		o := match(l, read.PlaceOf(x, list.Elem()), p, "")
		skips = o.skips()
		return o.admitted()
	}))
	if !skips {
		return out
	}
	some := l.Binders.Exists(list.Expr, read.Singular(hint), func(x cel.Value) cel.Bool {
		return match(l, read.PlaceOf(x, list.Elem()), p, "").ok()
	})
	if list.Typ == nil || !list.Typ.Filled {
		some = cel.Or(list.Expr.Size().Eq(cel.Int(0)), some)
	}
	return append(out, filter(some, false)...)
}

// An outcome is what a pattern says of a value, as steps in Kyverno's order of
// evaluation. The first step whose condition is false decides: a check fails,
// a filter skips. When all hold, the pattern is satisfied.
type outcome []step

type step struct {
	cond   cel.Bool
	filter bool
	// direct tells that a skip here is an anchor's own, not passed on by a nested
	// map or list: it hides failures of anchors beside it.
	direct bool
}

func check(c cel.Bool) outcome {
	if c.IsTrue() {
		return nil
	}
	return outcome{{cond: c}}
}

func filter(c cel.Bool, direct bool) outcome {
	if c.IsTrue() {
		return nil
	}
	return outcome{{cond: c, filter: true, direct: direct}}
}

// String tells the steps.
func (o outcome) String() string {
	if len(o) == 0 {
		return "always satisfied"
	}
	lines := make([]string, len(o))
	for i, s := range o {
		if lines[i] = "holds where " + s.cond.String(); s.filter {
			lines[i] = "applies where " + s.cond.String()
		}
	}
	return strings.Join(lines, "\n")
}

// ok is: satisfied.
func (o outcome) ok() cel.Bool {
	conds := make([]cel.Bool, len(o))
	for i, s := range o {
		conds[i] = s.cond
	}
	return cel.And(conds...)
}

// admitted is: satisfied or skipped. Checks that follow one another are put together at
// once: one by one, a long conjunction would be made anew for each of its terms.
func (o outcome) admitted() cel.Bool {
	rest := cel.True()
	for i := len(o) - 1; i >= 0; i-- {
		switch s := o[i]; {
		case s.filter:
			rest = cel.Implies(s.cond, rest)
		default:
			first := i
			for first > 0 && !o[first-1].filter {
				first--
			}
			rest = cel.And(o[first:i+1].ok(), rest)
			i = first
		}
	}
	return rest
}

// skips tells whether any step can skip.
func (o outcome) skips() bool {
	return slices.ContainsFunc(o, func(s step) bool { return s.filter })
}

// when makes each step count only where c holds.
func (o outcome) when(c cel.Bool) outcome {
	if c.IsTrue() || len(o) == 0 {
		return o
	}
	if !o.skips() {
		return check(cel.Implies(c, o.ok()))
	}
	out := make(outcome, len(o))
	for i, s := range o {
		s.cond = cel.Implies(c, s.cond)
		out[i] = s
	}
	return out
}

// boundedOutcome is o, unless its expressions are larger than an expression may be.
func boundedOutcome(l *read.Lowering, o outcome) outcome {
	nodes := 0
	for _, s := range o {
		nodes += s.cond.Nodes()
	}
	l.Opts.Budget.Spend(nodes)
	if nodes > read.ManyNodes {
		panic(read.TooLarge(l.Pos))
	}
	return o
}
