package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// wild is: text v matches pattern p, in the shortest form that says so. * is any
// run of characters, also an empty one, and ? exactly one.
func wild(v cel.Value, p string) cel.Bool {
	if !scalar.IsWild(p) {
		return v.Eq(cel.String(p))
	}
	p = scalar.Collapse(p)
	inner := strings.Trim(p, "*")
	switch {
	case p == "*":
		return cel.True()
	case p == "?*" || p == "*?":
		return v.Ne(cel.String(""))
	case scalar.IsWild(inner):
		return v.Matches(scalar.WildRegexp(p))
	case p == "*"+inner+"*":
		return v.Contains(cel.String(inner))
	case p == inner+"*":
		return v.StartsWith(cel.String(inner))
	default: // "*" + inner
		return v.EndsWith(cel.String(inner))
	}
}

// someKey is: a key of the map matches.
func (l *lowering) someKey(v place, key string) cel.Bool {
	found := l.binders.Exists(v.settled().expr, "key", func(k cel.Value) cel.Bool { return wild(k, key) })
	return cel.And(v.found(), found)
}

// wildKey is: some key that matches has a value that satisfies p. Kyverno takes
// an arbitrary one of the keys that match; deviation 3.
func (l *lowering) wildKey(v place, key string, p *policy.Node) cel.Bool {
	l.noteWildKey(p.Pos, key)
	m := v.settled()
	found := l.binders.Exists(m.expr, "key", func(k cel.Value) cel.Bool {
		value := placeOf(m.expr.Index(k), m.elem())
		if p.Kind == policy.String && p.Str == "*" {
			return wild(k, key)
		}
		return cel.And(wild(k, key), l.match(value, p, "").ok())
	})
	return cel.And(v.found(), found)
}
