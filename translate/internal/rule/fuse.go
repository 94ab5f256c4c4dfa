package rule

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// fuse makes one loop of those that say the same of several lists, as of a pod's
// containers of all three kinds, and of those that go through one list. The joined list
// is a variable: it is made once, however many rules go through it.
func fuse(l *read.Lowering, b cel.Bool) cel.Bool {
	b = b.Fuse(func(list cel.Value) bool { return query.ListType(l, list) != nil }, func(lists []cel.Value) cel.Value { return query.JoinLists(l, lists) })
	if joined := b.JoinLoops(); !cel.Equal(joined.Value, b.Value) {
		b = joined.Simplify()
	}
	return b.HoistLoops(func(v cel.Value) cel.Value { return nameLoop(l, v) }).AsBool()
}

// nameLoop is a variable for a loop that stands inside of another one, and says
// the same of every element of that.
func nameLoop(l *read.Lowering, v cel.Value) cel.Value {
	word := read.Singular(v.LastField())
	return read.Let(l, "related"+strings.ToUpper(word[:1])+word[1:]+"s", v)
}
