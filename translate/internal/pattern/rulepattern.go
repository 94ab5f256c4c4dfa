package pattern

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
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
