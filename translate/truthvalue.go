package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
)

// effect runs build and says whether what it built may be an error.
func (l *lowering) effect(build func() cel.Bool) native.Truth {
	saved := l.errs
	l.errs = false
	b := build()
	errs := l.errs
	l.errs = saved || errs
	return native.Truth{Expr: b, Errs: errs}
}
