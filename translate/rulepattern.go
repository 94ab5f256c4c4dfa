package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/native"
)

// pattern is: the object does not fail the pattern. A pattern says nothing about
// a deletion.
func (l *lowering) pattern(p *policy.Node) native.Truth {
	v, ok := l.patternSubject()
	if !ok {
		return l.filledIn(p)
	}
	l.noteIgnoredAnchors(p)
	l.refuseMetadata(p)
	if p, ok = l.dereferenced(p); !ok {
		return l.alwaysErrs("reference")
	}
	return l.effect(func() cel.Bool { return l.match(v, l.substituted(p), "").admitted() })
}

// filledIn is true, and an error where the pattern's variables are one: a pattern
// says nothing of a deletion, but Kyverno fills it in before it sees that.
func (l *lowering) filledIn(p *policy.Node) native.Truth {
	p, ok := l.dereferenced(p)
	if !ok {
		return l.alwaysErrs("reference")
	}
	return l.effect(func() cel.Bool { l.substituted(p); return cel.True() })
}

// noteIgnoredAnchors tells where a violation is an error to Kyverno, which a
// policy that ignores errors admits (deviation 2).
func (l *lowering) noteIgnoredAnchors(p *policy.Node) {
	if l.policy.FailurePolicy == policy.Ignore && tracksAnchors(p) {
		l.setPos(p.Pos)
		l.note(diag.IgnoredAnchor, "where an anchor's key is nowhere in the object, Kyverno calls a violation an error and ignores it; here it is a violation")
	}
}

// tracksAnchors tells whether a pattern has a conditional or existence anchor.
func tracksAnchors(p *policy.Node) bool {
	for _, f := range p.Fields {
		if kind, _ := anchor.Split(f.Key); kind == anchor.Conditional || kind == anchor.Existence || tracksAnchors(f.Value) {
			return true
		}
	}
	return slices.ContainsFunc(p.Items, tracksAnchors)
}

// anyPattern is: some pattern is satisfied, or none fails.
func (l *lowering) anyPattern(p *policy.Node) native.Truth {
	v, ok := l.patternSubject()
	if !ok {
		return l.filledIn(p)
	}
	if p.Kind == policy.List && len(p.Items) == 0 {
		return native.Sure(cel.True())
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
	return l.effect(func() cel.Bool { return l.someSatisfied(v, p.Items) })
}

// someSatisfied is: some pattern is satisfied, or none fails.
func (l *lowering) someSatisfied(v place, patterns []*policy.Node) cel.Bool {
	var oks, admits []cel.Bool
	skips := true
	for _, p := range patterns {
		o := l.match(v, asFloats(l.substituted(p)), "")
		oks = append(oks, o.ok())
		admits = append(admits, o.admitted())
		skips = skips && o.skips()
	}
	if !skips { // all skipped is impossible
		return cel.Or(oks...)
	}
	return cel.Or(append(oks, cel.And(admits...))...)
}

// asFloats is a pattern of an anyPattern, of which Kyverno reads all numbers as floating
// point: a text that reads as the same number satisfies them.
func asFloats(p *policy.Node) *policy.Node {
	out := *p
	switch p.Kind {
	case policy.Int:
		out.Kind, out.Float = policy.Float, float64(p.Int)
	case policy.List:
		out.Items = make([]*policy.Node, len(p.Items))
		for i, item := range p.Items {
			out.Items[i] = asFloats(item)
		}
	case policy.Map:
		out.Fields = slices.Clone(p.Fields)
		for i, f := range p.Fields {
			out.Fields[i].Value = asFloats(f.Value)
		}
	default:
		return p
	}
	return &out
}

// patternSubject is the value that a pattern is held against: the foreach element
// in scope, or the object.
func (e environment) patternSubject() (place, bool) {
	j := e.object
	if e.element != nil {
		j = *e.element
	}
	if j.form != placeForm {
		return place{}, false
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
		return l.substitutedText(p)
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
		key, ok := l.filledText(l.parseTemplate(f.Key, f.Pos)).lit.(string)
		if !ok {
			l.setPos(f.Pos)
			panic(l.refuse(diag.PatternVariable, "a pattern's key that is only known at run time, %q", f.Key))
		}
		out.Fields[i] = policy.Field{Key: key, Pos: f.Pos, Value: l.substituted(f.Value)}
	}
	return &out
}

// substitutedText is a text of a pattern. Where it may be an error, it is one also if no
// part of the pattern reads it.
func (l *lowering) substitutedText(p *policy.Node) *policy.Node {
	l.setPos(p.Pos)
	t := l.parseTemplate(p.Str, p.Pos)
	j := l.filledText(t)
	if j.form == litForm {
		return nodeOf(j.lit, p.Pos)
	}
	return l.runtimeLeaf(p, t, j)
}

// filledText is what a text of a pattern stands for. The old object is held against
// what Kyverno filled in when it judged the new one (8.4), unless that is an element.
func (l *lowering) filledText(t *jmespath.Template) operand {
	if l.now == nil || l.scope != nil {
		return l.template(t)
	}
	defer l.restore(l.environment)
	l.environment = l.ofNewObject()
	return l.template(t)
}
