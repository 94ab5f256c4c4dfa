package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
)

// someKey is: a key of the map matches.
func (l *lowering) someKey(v place, key string) cel.Bool {
	found := l.binders.Exists(v.settled().expr, "key", func(k cel.Value) cel.Bool { return native.Matches(k, key) })
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
			return native.Matches(k, key)
		}
		return cel.And(native.Matches(k, key), l.match(value, p, "").ok())
	})
	return cel.And(v.found(), found)
}
