package pattern

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Holds is: the object does not fail the pattern. A pattern says nothing about
// a deletion.
func Holds(l *read.Lowering, p *policy.Node) partial.Bool {
	v, ok := l.PatternSubject()
	if !ok {
		return filledIn(l, p)
	}
	noteIgnoredAnchors(l, p)
	read.RefuseMetadata(l, p)
	if p, ok = dereferenced(l, p); !ok {
		return badReference()
	}
	p, d := substituted(l, p)
	return l.Told(d, match(l, v, p, "").admitted())
}

// filledIn is true, and an error where the pattern's variables are one: a pattern
// says nothing of a deletion, but Kyverno fills it in before it sees that.
func filledIn(l *read.Lowering, p *policy.Node) partial.Bool {
	p, ok := dereferenced(l, p)
	if !ok {
		return badReference()
	}
	_, d := substituted(l, p)
	return l.Told(d, cel.True())
}

// noteIgnoredAnchors tells where a violation is an error to Kyverno, which a
// policy that ignores errors admits (deviation 2).
func noteIgnoredAnchors(l *read.Lowering, p *policy.Node) {
	if l.Policy.FailurePolicy == policy.Ignore && tracksAnchors(p) {
		l.SetPos(p.Pos)
		l.Note(diag.IgnoredAnchor, "where an anchor's key is nowhere in the object, Kyverno calls a violation an error and ignores it; here it is a violation")
	}
}

// tracksAnchors tells whether a pattern has a conditional or existence anchor.
func tracksAnchors(p *policy.Node) bool {
	return someAnchor(p, func(kind anchor.Kind) bool { return kind == anchor.Conditional || kind == anchor.Existence })
}

// AnyPattern is: some pattern is satisfied, or none fails.
func AnyPattern(l *read.Lowering, p *policy.Node) partial.Bool {
	v, ok := l.PatternSubject()
	if !ok {
		return filledIn(l, p)
	}
	if p.Kind == policy.List && len(p.Items) == 0 {
		return partial.Sure(cel.True())
	}
	if p.Kind != policy.List {
		panic(l.Unsupported("an anyPattern that is no list"))
	}
	for _, item := range p.Items {
		read.RefuseMetadata(l, item)
	}
	if p, ok = dereferenced(l, p); !ok {
		return badReference()
	}
	d, some := someSatisfied(l, v, p.Items)
	return l.Told(d, some)
}

// someSatisfied is: some pattern is satisfied, or none fails.
func someSatisfied(l *read.Lowering, v read.Place, patterns []*policy.Node) (d read.Demands, some cel.Bool) {
	var oks, admits []cel.Bool
	skips := true
	for _, p := range patterns {
		p, of := substituted(l, p)
		d = d.And(of)
		o := match(l, v, asFloats(p), "")
		oks = append(oks, o.ok())
		admits = append(admits, o.admitted())
		skips = skips && o.skips()
	}
	if !skips { // all skipped is impossible
		return d, cel.Or(oks...)
	}
	return d, cel.Or(append(oks, cel.And(admits...))...)
}

// asFloats is a pattern of an AnyPattern, of which Kyverno reads all numbers as floating
// point: a text that reads as the same number satisfies them.
func asFloats(p *policy.Node) *policy.Node {
	switch p.Kind {
	case policy.Int:
		out := *p
		out.Kind, out.Float = policy.Float, float64(p.Int)
		return &out
	case policy.List, policy.Map:
		return rebuilt(p, func(_ int, item *policy.Node) *policy.Node { return asFloats(item) }, func(f policy.Field) policy.Field {
			f.Value = asFloats(f.Value)
			return f
		})
	}
	return p
}

// rebuilt is a list or a map of other items or fields.
func rebuilt(p *policy.Node, item func(int, *policy.Node) *policy.Node, field func(policy.Field) policy.Field) *policy.Node {
	out := *p
	out.Items, out.Fields = slices.Clone(p.Items), slices.Clone(p.Fields)
	for i, n := range p.Items {
		out.Items[i] = item(i, n)
	}
	for i, f := range p.Fields {
		out.Fields[i] = field(f)
	}
	return &out
}

// substituted is a pattern with its variables replaced, which is possible where
// their values are known when compiling, and what the variables demand: also those in
// parts of the pattern that nothing reads.
func substituted(l *read.Lowering, p *policy.Node) (_ *policy.Node, d read.Demands) {
	within := func(p *policy.Node) *policy.Node {
		out, of := substituted(l, p)
		d = d.And(of)
		return out
	}
	switch {
	case !query.HasVariables(p):
		return p, d
	case p.Kind == policy.String:
		return substitutedText(l, p)
	}
	return rebuilt(p, func(_ int, item *policy.Node) *policy.Node { return within(item) }, func(f policy.Field) policy.Field {
		j := filledText(l, query.ParseTemplate(f.Key, f.Pos))
		key, ok := j.Lit.(string)
		if !ok {
			l.SetPos(f.Pos)
			panic(l.Refuse(diag.PatternVariable, "a pattern's key that is only known at run time, %q", f.Key))
		}
		d = d.And(j.Anyway())
		return policy.Field{Key: key, Pos: f.Pos, Value: within(f.Value)}
	}), d
}

// substitutedText is substituted of a text.
func substitutedText(l *read.Lowering, p *policy.Node) (*policy.Node, read.Demands) {
	l.SetPos(p.Pos)
	t := query.ParseTemplate(p.Str, p.Pos)
	j := filledText(l, t)
	if j.Form == read.LitForm {
		return query.NodeOf(j.Lit, p.Pos), j.Anyway()
	}
	d, _ := read.DemandsOf(l, j)
	return runtimeLeaf(l, p, t, j), d
}

// filledText is what a text of a pattern stands for. The old object is held against
// what Kyverno filled in when it judged the new one (8.4), unless that is an element.
func filledText(l *read.Lowering, t *jmespath.Template) read.Operand {
	if !l.OfOld() || l.Scope != nil {
		return query.Template(l, t)
	}
	l = l.Inside()
	l.Environment = l.OfNewObject()
	return query.Template(l, t)
}

// A key with wildcards stands for the keys of labels or annotations that match it. Kyverno
// takes an arbitrary one of them; deviation 3.
func isWildKey(v read.Place, key string) bool {
	return v.Part == read.InLabels && scalar.IsWild(key)
}

// wildKey says of a key with wildcards what its anchor says of it: acme.io/* with "?*" is
//
//	labels.exists(key, key.startsWith('acme.io/') && labels[key] != '')
func wildKey(l *read.Lowering, v read.Place, kind anchor.Kind, key string, p *policy.Node) cel.Bool {
	l.SetPos(p.Pos)
	l.Note(diag.WildcardKey, "Kyverno takes an arbitrary one of the keys that match %s; here %s", key, decided(kind))
	switch kind {
	case anchor.Conditional:
		return someKey(l, v, key, p)
	case anchor.Equality:
		return everyKey(l, v, key, p)
	case anchor.Negation, anchor.Existence: // the value of a label is no list
		return cel.Not(compare.SomeKey(l, v, key))
	case anchor.Global:
		return cel.Implies(compare.SomeKey(l, v, key), someKey(l, v, key, p))
	default:
		some := someKey(l, v, key, p)
		if compare.NullSatisfies(l, p) { // as any key that is missing
			some = cel.Or(some, cel.Not(compare.SomeKey(l, v, key)))
		}
		return some
	}
}

// decided says what an anchor makes of several keys that match.
func decided(kind anchor.Kind) string {
	switch kind {
	case anchor.Conditional, anchor.Global:
		return "the condition holds where some matching key satisfies it"
	case anchor.Equality:
		return "every matching key must satisfy the pattern"
	case anchor.Negation, anchor.Existence:
		return "no matching key may be there"
	default:
		return "some matching key must satisfy the pattern"
	}
}

// someKey is: some key that matches has a value that satisfies p.
func someKey(l *read.Lowering, v read.Place, key string, p *policy.Node) cel.Bool {
	found := l.Binders.Exists(v.Settled().Expr, "key", func(k cel.Value) cel.Bool {
		return cel.And(native.Matches(k, key), entrySatisfies(l, v, k, p))
	})
	return cel.And(v.Found(), found)
}

// everyKey is: each key that matches has a value that satisfies p.
func everyKey(l *read.Lowering, v read.Place, key string, p *policy.Node) cel.Bool {
	all := l.Binders.All(v.Settled().Expr, "key", func(k cel.Value) cel.Bool {
		return cel.Implies(native.Matches(k, key), entrySatisfies(l, v, k, p))
	})
	return cel.Implies(v.Found(), all)
}

// entrySatisfies is: the value of key k, which is there, satisfies p.
func entrySatisfies(l *read.Lowering, v read.Place, k cel.Value, p *policy.Node) cel.Bool {
	if p.Kind == policy.String && p.Str == "*" {
		return cel.True()
	}
	m := v.Settled()
	return match(l, read.PlaceOf(m.Expr.Index(k), m.Elem()), p, "").ok()
}

// Filled is a leaf with variables as a pattern has it: it stands for a text of the request.
func Filled(l *read.Lowering, p *policy.Node) *policy.Node {
	l.SetPos(p.Pos)
	t := query.ParseTemplate(p.Str, p.Pos)
	return runtimeLeaf(l, p, t, query.Template(l, t))
}

// runtimeLeaf is a leaf that stands for a variable's text. Around the variable there
// may be words and wildcards, but no operators.
func runtimeLeaf(l *read.Lowering, p *policy.Node, t *jmespath.Template, j read.Operand) *policy.Node {
	has := func(chars string) bool {
		return slices.ContainsFunc(t.Parts, func(part jmespath.Part) bool { return strings.ContainsAny(part.Text, chars) })
	}
	if has("|&<>! \t\r\n") || !compare.IsPlainText(j) {
		panic(compare.UnknownPattern(l, p))
	}
	stands := read.RuntimeText{Text: j.V.Expr, Typ: j.Typ(), Alone: t.Single() != nil}
	if has("*?") {
		stands = wildText(l, p, t)
	}
	compare.NoteSame(l, j, j)
	leaf := &policy.Node{Kind: policy.String, Pos: p.Pos}
	l.RuntimeTexts[leaf] = stands
	return leaf
}

// wildText is a text with a * at one end.
func wildText(l *read.Lowering, p *policy.Node, t *jmespath.Template) read.RuntimeText {
	plain := *t
	plain.Parts = slices.Clone(t.Parts)
	first, last := &plain.Parts[0], &plain.Parts[len(plain.Parts)-1]
	before := strings.HasPrefix(first.Text, "*")
	if before {
		first.Text = first.Text[1:]
	} else {
		last.Text = strings.TrimSuffix(last.Text, "*")
	}
	if slices.ContainsFunc(plain.Parts, func(part jmespath.Part) bool { return scalar.IsWild(part.Text) }) {
		panic(compare.UnknownPattern(l, p))
	}
	text, _ := query.Text(l, filledText(l, &plain)) // of which the whole demands as much
	out := read.RuntimeText{Text: text, Typ: read.StringType()}
	out.Match = func(x cel.Value) cel.Bool {
		if before {
			return x.EndsWith(out.Text)
		}
		return x.StartsWith(out.Text)
	}
	return out
}
