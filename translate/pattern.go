package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// The outcome of a pattern follows the overlay engine step by step
// (docs/semantics.md, patterns). A missing value is matched as null.

// match says what pattern p finds at v, where v may be missing.
func (l *lowering) match(v place, p *policy.Node, hint string) outcome {
	l.step()
	if p.Kind == policy.Map || p.Kind == policy.List {
		return l.boundedOutcome(l.matchOr(v, p, false, hint))
	}
	if l.isRuntime(p) {
		return check(l.runtimeScalar(v, p, nil))
	}
	return check(l.scalar(v, p, l.nullSatisfies(p)))
}

// matchOr is match with another verdict, ok, for a value that is not there:
// the equality anchor wants true. The verdict counts for all of v's guards.
func (l *lowering) matchOr(v place, p *policy.Node, ok bool, hint string) outcome {
	switch p.Kind {
	case policy.Map:
		return l.matchMap(v, p, ok)
	case policy.List:
		return l.matchList(v, p, ok, hint)
	}
	if l.isRuntime(p) {
		return check(l.runtimeScalar(v, p, &ok))
	}
	return check(l.scalar(v, p, ok))
}

// A metadataPart says how deep below metadata a pattern is: keys of labels and
// annotations may hold wildcards.
type metadataPart int

const (
	elsewhere metadataPart = iota
	inMetadata
	inLabels
)

func partOf(parent metadataPart, key string) metadataPart {
	switch {
	case key == "metadata":
		return inMetadata
	case parent == inMetadata && (key == "labels" || key == "annotations"):
		return inLabels
	}
	return elsewhere
}

// matchMap applies the pattern's keys. Where every key says of a missing parent
// what the parent itself would say, the parent's guards are left to the keys, so
// that one chain of optional selections reads through all levels.
func (l *lowering) matchMap(v place, p *policy.Node, ok bool) outcome {
	if v.never {
		return check(cel.Lit(ok))
	}
	switch v.kind() {
	case schema.Object, schema.Map:
		if v.certain() || l.chains(v, p, ok) {
			return l.keys(v, p)
		}
		if ok {
			return l.keys(v.settled(), p).when(v.found())
		}
		return append(check(v.found()), l.keys(v.settled(), p)...)
	case schema.Any:
		o := append(check(isMap(v.expr)), l.keys(v.settled().asMap(), p)...)
		return l.behind(v, o, ok)
	}
	return l.behind(v, check(cel.False()), ok)
}

// behind puts a place's guards before an outcome of its settled value.
func (l *lowering) behind(v place, o outcome, ok bool) outcome {
	if v.certain() {
		return o
	}
	if ok {
		return o.when(v.found())
	}
	return append(check(v.found()), o...)
}

// chains tells whether all keys of p may take over v's guards.
func (l *lowering) chains(v place, p *policy.Node, ok bool) bool {
	if v.part == inLabels && len(textsOnly(p).Fields) != len(p.Fields) {
		return false
	}
	if v.opt.IsZero() || len(p.Fields) == 0 {
		return false
	}
	for _, f := range p.Fields {
		kind, key := anchor.Split(f.Key)
		child := v.matched(key)
		if child.opt.IsZero() || child.never || scalar.IsWild(key) {
			return false
		}
		switch {
		case kind == anchor.Equality && ok:
		case kind == anchor.Plain && !ok && !l.nullSatisfies(f.Value):
		default:
			return false
		}
		if f.Value.Kind == policy.Map && !child.dynamic() && !l.chains(child, f.Value, ok) && (ok || len(p.Fields) > 1) {
			return false
		}
	}
	return true
}

// keys applies a map pattern's keys in the engine's two phases.
func (l *lowering) keys(v place, p *policy.Node) outcome {
	if v.part == inLabels {
		p = textsOnly(p)
	}
	first, second := phases(p)
	return append(l.anchors(v, first), l.plainKeys(v, second)...)
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

func hasAnchors(n *policy.Node) bool {
	for _, item := range n.Items {
		if hasAnchors(item) {
			return true
		}
	}
	for _, f := range n.Fields {
		if kind, _ := anchor.Split(f.Key); kind != anchor.Plain || hasAnchors(f.Value) {
			return true
		}
	}
	return false
}

// anchors is phase one. Conditional anchors sort first, and a mismatch of one
// skips the map whatever the others say. A skip that an equality anchor passes
// on counts only when no anchor of this map applied.
func (l *lowering) anchors(v place, fields []policy.Field) outcome {
	var out outcome
	var skippable []cel.Bool // what must hold for the equality anchors that can skip to apply
	applied := false         // some anchor applies whenever phase one does not fail
	for _, f := range fields {
		kind, key := anchor.Split(f.Key)
		switch kind {
		case anchor.Conditional:
			out = append(out, filter(l.conditional(v, key, f.Value), false)...)
			applied = true
		case anchor.Negation:
			out = append(out, check(l.negation(v, key))...)
			applied = true
		case anchor.Existence:
			out = append(out, check(l.existence(v, key, f.Value))...)
			applied = true
		case anchor.Equality:
			o := l.equality(v, key, f.Value)
			if !o.skips() {
				out = append(out, o...)
				applied = true
				continue
			}
			out = append(out, check(o.admitted())...)
			if o.skipsDirectly() {
				l.setPos(f.Pos)
				panic(l.unsupported("a global anchor right below an equality anchor"))
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
func (l *lowering) plainKeys(v place, fields []policy.Field) outcome {
	var out outcome
	for _, f := range fields {
		kind, key := anchor.Split(f.Key)
		switch {
		case kind == anchor.Global && scalar.IsWild(key) && v.part == inLabels:
			out = append(out, filter(cel.Implies(l.someKey(v, key), l.wildKey(v, key, f.Value)), true)...)
		case kind == anchor.Global:
			out = append(out, filter(l.global(v, key, f.Value), true)...)
		case scalar.IsWild(key) && v.part == inLabels:
			some := l.wildKey(v, key, f.Value)
			if l.nullSatisfies(f.Value) { // as any key that is missing
				some = cel.Or(some, cel.Not(l.someKey(v, key)))
			}
			out = append(out, check(some)...)
		case f.Value.Kind == policy.String && f.Value.Str == "*":
			out = append(out, check(l.nonNull(v.matched(key)))...)
		default:
			out = append(out, l.match(v.matched(key), f.Value, key)...)
		}
	}
	return out
}

// global is: the key is missing or its value satisfies p.
func (l *lowering) global(v place, key string, p *policy.Node) cel.Bool {
	return l.matchOr(v.matched(key), p, true, key).ok()
}

func (l *lowering) nonNull(v place) cel.Bool {
	if v.dynamic() {
		return cel.And(v.found(), cel.Not(isNull(v.expr)))
	}
	return v.found()
}

// conditional is: the key is there and its value satisfies p.
func (l *lowering) conditional(v place, key string, p *policy.Node) cel.Bool {
	if scalar.IsWild(key) && v.part == inLabels {
		return l.wildKey(v, key, p)
	}
	child := v.matched(key)
	return l.matchOr(child, p, false, key).ok()
}

// equality is: the key is missing or its value satisfies p.
func (l *lowering) equality(v place, key string, p *policy.Node) outcome {
	if scalar.IsWild(key) && v.part == inLabels {
		return check(cel.Implies(l.someKey(v, key), l.wildKey(v, key, p)))
	}
	child := v.matched(key)
	return l.matchOr(child, p, true, key)
}

// negation is: the key is missing.
func (l *lowering) negation(v place, key string) cel.Bool {
	if scalar.IsWild(key) && v.part == inLabels {
		return cel.Not(l.someKey(v, key))
	}
	return cel.Not(v.matched(key).found())
}

// existence is: the key is missing, or each map of p is satisfied by some element.
func (l *lowering) existence(v place, key string, p *policy.Node) cel.Bool {
	child := v.matched(key)
	if child.never {
		return cel.True()
	}
	missing := cel.Not(child.found())
	list := child.settled()
	if p.Kind != policy.List || (list.kind() != schema.List && !list.dynamic()) {
		return missing
	}
	conds := []cel.Bool{}
	if list.dynamic() {
		conds = append(conds, isList(list.expr))
	}
	for _, item := range p.Items {
		if item.Kind != policy.Map {
			return missing
		}
		conds = append(conds, l.binders.Exists(list.expr, singular(key), func(x cel.Value) cel.Bool {
			return l.match(placeOf(x, list.elem()), item, "").ok()
		}))
	}
	return cel.Or(missing, cel.And(conds...))
}

// matchList applies a list pattern; only its first element says how.
func (l *lowering) matchList(v place, p *policy.Node, ok bool, hint string) outcome {
	if v.never {
		return check(cel.Lit(ok))
	}
	if v.kind() != schema.List && !v.dynamic() {
		return l.behind(v, check(cel.False()), ok)
	}
	if len(p.Items) == 0 {
		return l.behind(v, check(cel.False()), ok)
	}
	if v.dynamic() {
		o := append(check(isList(v.expr)), l.elements(placeOf(v.expr, &schema.Type{Kind: schema.List, Elem: anyType()}), p, hint)...)
		return l.behind(v, o, ok)
	}
	if ok && !v.certain() && !v.opt.IsZero() && p.Items[0].Kind != policy.List {
		// an empty list satisfies every pattern that looks at all elements
		return l.elements(placeOf(v.opt.OrValue(cel.List()), v.typ), p, hint)
	}
	return l.behind(v, l.elements(v.settled(), p, hint), ok)
}

func (l *lowering) elements(list place, p *policy.Node, hint string) outcome {
	first := p.Items[0]
	switch first.Kind {
	case policy.List:
		panic(l.unsupported("a pattern of a list of lists"))
	case policy.Map:
		return l.eachElement(list, first, hint)
	}
	return check(l.binders.All(list.expr, singular(hint), func(x cel.Value) cel.Bool {
		if l.isRuntime(first) {
			return l.runtimeElement(placeOf(x, list.elem()), first)
		}
		return l.scalarOne(placeOf(x, list.elem()), first, false)
	}))
}

// eachElement applies one map pattern to every element. Elements may be skipped;
// when all are, the list is.
func (l *lowering) eachElement(list place, p *policy.Node, hint string) outcome {
	var skips bool
	out := check(l.binders.All(list.expr, singular(hint), func(x cel.Value) cel.Bool {
		o := l.match(placeOf(x, list.elem()), p, "")
		skips = o.skips()
		return o.admitted()
	}))
	if !skips {
		return out
	}
	some := l.binders.Exists(list.expr, singular(hint), func(x cel.Value) cel.Bool {
		return l.match(placeOf(x, list.elem()), p, "").ok()
	})
	return append(out, filter(cel.Or(list.expr.Size().Eq(cel.Int(0)), some), false)...)
}
