package read

import (
	"github.com/kvap/kvap/cel"
)

// SortedSequence is a list that was sorted. CEL sorts from 1.35 on; before, its elements can
// be searched and counted.
type SortedSequence struct{ Sequence }

// List implements Sequence.
func (s SortedSequence) List(l *Lowering, strict bool) (cel.Value, bool) {
	v, ok := s.Sequence.List(l, strict)
	if !ok || !l.Release.Has("sort") {
		return cel.Value{}, false
	}
	return v.Call(cel.FuncSort), true
}

// Ordered implements Sequence.
func (s SortedSequence) Ordered() bool { return true }
