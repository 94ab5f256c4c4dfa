package translate

import (
	"github.com/kvap/kvap/cel"
)

// sortedSequence is a list that was sorted. CEL sorts from 1.35 on; before, its elements can
// be searched and counted.
type sortedSequence struct{ sequence }

func (s sortedSequence) list(l *lowering, strict bool) (cel.Value, bool) {
	v, ok := s.sequence.list(l, strict)
	if !ok || !l.release.Has("sort") {
		return cel.Value{}, false
	}
	return v.Call(cel.FuncSort), true
}

func (s sortedSequence) ordered() bool { return true }
