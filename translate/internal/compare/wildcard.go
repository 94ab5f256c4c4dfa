package compare

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// SomeKey is: a key of the map matches.
func SomeKey(l *read.Lowering, v read.Place, key string) cel.Bool {
	found := l.Binders.Exists(v.Settled().Expr, "key", func(k cel.Value) cel.Bool { return native.Matches(k, key) })
	return cel.And(v.Found(), found)
}
