package pattern

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// Kyverno keeps a ledger of the keys with a conditional or existence anchor. Where one
// belongs to a map that was looked at, and was in none of them, a violation is an error.
// What is looked at ends where the pattern is decided: in a list with the first element
// that fails, in a map with the first key that does.

// A sighting is what comes to the ledger of one key: whether a map that it belongs to
// is looked at, and whether the key is in one. Both are asked where a condition holds.
type sighting struct{ where, visited, present cel.Bool }

// complete is: the key makes no error of a violation.
func (s sighting) complete() cel.Bool {
	if cel.Equal(s.visited.Value, s.present.Value) {
		return cel.True()
	}
	return cel.Implies(s.where, cel.Or(s.present, cel.Not(s.visited)))
}

// everywhere is the sighting asked under no condition.
func (s sighting) everywhere() sighting {
	return sighting{cel.True(), cel.And(s.where, s.visited), cel.And(s.where, s.present)}
}

// sightings are those of all keys, as they are written.
type sightings map[string]sighting

// add adds more, for where a condition holds.
func (s sightings) add(more sightings, where cel.Bool) {
	for key, t := range more {
		t.where = cel.And(where, t.where)
		if old, ok := s[key]; ok {
			old, t = old.everywhere(), t.everywhere()
			t.visited, t.present = cel.Or(old.visited, t.visited), cel.Or(old.present, t.present)
		}
		s[key] = t
	}
}

// HasExistence tells of an existence anchor. In a foreach, what comes to the ledger of what they
// look for excuses no update.
func HasExistence(p *policy.Node) bool {
	return p != nil && someAnchor(p, func(kind anchor.Kind) bool { return kind == anchor.Existence })
}

// NoError is: no key makes an error of a violation. It is asked where the pattern is
// violated.
func NoError(l *read.Lowering, v read.Place, p *policy.Node) cel.Bool {
	p, ok := dereferenced(l, p)
	if !ok { // an error on every object
		return cel.False()
	}
	p, _ = substituted(l, p) // the pattern itself demands that
	seen := anchorsSeen(l, v, p)
	hasNegations := someAnchor(p, func(kind anchor.Kind) bool { return kind == anchor.Negation })
	if !seen.IsTrue() && hasNegations { // the violation of a negation is no error whatever is missing
		l.SetPos(p.Pos)
		panic(l.Unsupported("a negation beside conditions, in a rule that excuses existing violations,"))
	}
	return seen
}

// anchorsSeen is: no key is missing where a violation is found.
func anchorsSeen(l *read.Lowering, v read.Place, p *policy.Node) cel.Bool {
	seen := sightingsOf(l, v, p)
	var all []cel.Bool
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, seen[key].complete())
	}
	return cel.And(all...)
}

// sightingsOf are those on the way through v, which may be missing.
func sightingsOf(l *read.Lowering, v read.Place, p *policy.Node) sightings {
	out := sightings{}
	switch {
	case v.Never || !tracksAnchors(p):
	case p.Kind == policy.Map && v.Dynamic():
		out.add(keySightings(l, v.Settled().AsMap(), p), cel.And(v.Found(), read.IsMap(v.Expr)))
	case p.Kind == policy.Map && (v.Kind() == schema.Object || v.Kind() == schema.Map):
		out.add(keySightings(l, v.Settled(), p), v.Found())
	case p.Kind != policy.List || p.Items[0].Kind != policy.Map: // of which the first element says how
	case v.Dynamic():
		list := v.Settled()
		list.Typ = &schema.Type{Kind: schema.List, Elem: read.AnyType()}
		out.add(elementSightings(l, list, p.Items[0]), cel.And(v.Found(), read.IsList(v.Expr)))
	case v.Kind() == schema.List:
		out.add(elementSightings(l, v.Settled(), p.Items[0]), v.Found())
	}
	return out
}

// keySightings are those of the keys of a map and of what is below them. The ledger
// has the map's own keys before any is decided.
func keySightings(l *read.Lowering, v read.Place, p *policy.Node) sightings {
	if v.Part == read.InLabels {
		p = textsOnly(p)
	}
	out := sightings{}
	first, second := phases(p)
	for i, f := range first {
		if kind, key := anchor.Split(f.Key); kind == anchor.Conditional || kind == anchor.Existence {
			out.add(sightings{f.Key: {cel.True(), cel.True(), carriesKey(l, v, key)}}, cel.True())
		}
		if tracksAnchors(f.Value) {
			out.add(sightingsBelow(l, v, f), anchors(l, v, first[:i]).admitted())
		}
	}
	for i, f := range second {
		if tracksAnchors(f.Value) {
			reached := cel.And(anchors(l, v, first).ok(), plainKeys(l, v, second[:i]).ok())
			out.add(sightingsBelow(l, v, f), reached)
		}
	}
	return out
}

// carriesKey is: a map has a key, or one like it where keys may hold wildcards.
func carriesKey(l *read.Lowering, v read.Place, key string) cel.Bool {
	if isWildKey(v, key) {
		return compare.SomeKey(l, v, key)
	}
	return v.Matched(key).Found()
}

func sightingsBelow(l *read.Lowering, v read.Place, f policy.Field) sightings {
	kind, key := anchor.Split(f.Key)
	switch kind {
	case anchor.Negation: // which looks at no value
		return nil
	case anchor.Existence:
		l.SetPos(f.Pos)
		panic(l.Unsupported("a condition below an existence anchor, in a rule that excuses existing violations,"))
	}
	return sightingsOf(l, v.Matched(key), f.Value)
}

// elementSightings are those of elements that a map is held against, up to the first that
// fails.
func elementSightings(l *read.Lowering, list read.Place, p *policy.Node) sightings {
	element, release := l.Binders.Bind(read.Singular(read.Hint(list)))
	defer release()
	x := read.PlaceOf(element, list.Elem())
	out := sightings{}
	below := sightingsOf(l, x, p)
	for _, key := range slices.Sorted(maps.Keys(below)) {
		s, last := below[key].everywhere(), isLast(l, x, p, key)
		out[key] = sighting{cel.True(), met(list.Expr, element, s.visited, last), met(list.Expr, element, s.present, last)}
	}
	return out
}

// isLast is: no element after x is looked at. A map whose own condition is on a key is
// decided by nothing else where the key is missing, so that need not be asked.
func isLast(l *read.Lowering, x read.Place, p *policy.Node, key string) cel.Bool {
	kind, _ := anchor.Split(key)
	own := kind == anchor.Conditional && slices.ContainsFunc(p.Fields, func(f policy.Field) bool { return f.Key == key })
	switch {
	case own && !x.Dynamic():
		return cel.False()
	case own:
		return cel.Not(read.IsMap(x.Expr))
	}
	return cel.Not(match(l, x, p, "").admitted())
}

// met is: some element satisfies cond, of those up to the first that is the last to be
// looked at.
func met(list, x cel.Value, cond, last cel.Bool) cel.Bool {
	cond, some := cond.Simplify(), list.Size().Ne(cel.Int(0))
	switch {
	case cond.IsFalse():
		return cond
	case cond.IsTrue():
		return some
	case last.IsFalse():
		return cel.ForSome.Of(list, x, cond)
	case cel.Equal(last.Value, cel.Not(cond).Value): // the first element decides
		return cel.And(some, cond.Substitute(x.String(), list.Index(cel.Int(0))).AsBool())
	}
	either := cel.Or(last, cond).Simplify()
	return list.Macro(cel.MacroMap, x, either.Value, cond.Value).OptIndex(cel.Int(0)).OrValue(cel.False().Value).AsBool()
}

// dereferenced is a pattern with its $(...) replaced by what they point at: other
// leaves of the pattern, never of the object. It is false where one points at
// nothing, or at what is no text.
func dereferenced(l *read.Lowering, root *policy.Node) (*policy.Node, bool) {
	d := dereferencer{l: l, root: root, ok: true}
	out := d.node(root, "/")
	return out, d.ok
}

// badReference is what a pattern is that is not dereferenced: Kyverno errs on every object.
func badReference() partial.Bool {
	return partial.Error("reference")
}

type dereferencer struct {
	l    *read.Lowering
	root *policy.Node
	ok   bool
}

// node is n at the place at, which is written with the anchors of its keys.
func (d *dereferencer) node(n *policy.Node, at string) *policy.Node {
	out := rebuilt(n, func(i int, item *policy.Node) *policy.Node { return d.node(item, path.Join(at, strconv.Itoa(i))) }, func(f policy.Field) policy.Field {
		f.Value = d.node(f.Value, path.Join(at, f.Key))
		return f
	})
	if n.Kind == policy.String {
		out.Str = d.text(n, at)
	}
	return out
}

func (d *dereferencer) text(n *policy.Node, at string) string {
	t := query.ParseTemplate(n.Str, n.Pos)
	if !t.HasRefs() {
		return n.Str
	}
	var b strings.Builder
	for _, part := range t.Parts {
		switch {
		case part.Ref != nil:
			b.WriteString(d.value(part.Ref, at))
		case part.Var != nil:
			d.l.SetPos(n.Pos)
			panic(d.l.Unsupported("a reference beside a variable"))
		default:
			b.WriteString(part.Text)
		}
	}
	return b.String()
}

// value is the text that a reference stands for: of a string the string, and
// behind an operator of a number too.
func (d *dereferencer) value(r *jmespath.Reference, at string) string {
	to := r.Path
	if !strings.HasPrefix(to, "/") {
		to = path.Join(at, to)
	}
	n := d.find(d.root, strings.Split(strings.Trim(path.Clean(to), "/"), "/"))
	switch {
	case n == nil:
	case n.Kind == policy.String && query.HasVariables(n):
		d.l.SetPos(n.Pos)
		panic(d.l.Unsupported("a reference to a value with variables"))
	case n.Kind == policy.String:
		return r.Operator + n.Str
	case r.Operator == "":
	case n.Kind == policy.Int:
		return r.Operator + strconv.FormatInt(n.Int, 10)
	case n.Kind == policy.Float:
		return r.Operator + strconv.FormatFloat(n.Float, 'f', 6, 64)
	}
	d.ok = false
	return ""
}

// find is the leaf at a place; the keys on the way are compared without anchors.
func (d *dereferencer) find(n *policy.Node, steps []string) *policy.Node {
	if len(steps) == 0 {
		if n.Kind == policy.Map || n.Kind == policy.List {
			return nil
		}
		return n
	}
	if n.Kind == policy.List {
		i, err := strconv.Atoi(steps[0])
		if err != nil || i < 0 || i >= len(n.Items) {
			return nil
		}
		return d.find(n.Items[i], steps[1:])
	}
	for _, f := range n.Fields {
		if _, key := anchor.Split(f.Key); key == steps[0] {
			return d.find(f.Value, steps[1:])
		}
	}
	return nil
}
