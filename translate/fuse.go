package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// fuse makes one loop of those that say the same of several lists, as of a pod's
// containers of all three kinds, and of those that go through one list. The joined list
// is a variable: it is made once, however many rules go through it.
func (l *lowering) fuse(b cel.Bool) cel.Bool {
	b = b.Fuse(func(list cel.Value) bool { return l.listType(list) != nil }, l.joinLists)
	if joined := b.JoinLoops(); !cel.Equal(joined.Value, b.Value) {
		b = joined.Simplify()
	}
	return b.HoistLoops(l.nameLoop).AsBool()
}

// nameLoop is a variable for a loop that stands inside of another one, and says
// the same of every element of that.
func (l *lowering) nameLoop(v cel.Value) cel.Value {
	word := singular(v.LastField())
	return l.let("related"+strings.ToUpper(word[:1])+word[1:]+"s", v)
}

// joinLists is a variable that holds the lists one after the other.
func (l *lowering) joinLists(lists []cel.Value) cel.Value {
	sum := lists[0]
	certain := 0
	for i, list := range lists { // the list that is always there comes first
		if _, defaulted, _ := list.OptionalPath(); !defaulted && certain == 0 {
			lists[0], lists[i] = lists[i], lists[0]
			sum, certain = lists[0], 1
		}
	}
	for _, list := range lists[1:] {
		sum = sum.Plus(dyn(list)) // to the type checker, elements of different fields are of different types
	}
	v := l.let(l.listName(lists), sum)
	if path, ok := v.Path(); ok {
		if l.listTypes == nil {
			l.listTypes = map[string]*schema.Type{}
		}
		l.listTypes[path[1]] = l.listType(lists[0])
	}
	return v
}

// listName is allContainers for containers and initContainers.
func (l *lowering) listName(lists []cel.Value) string {
	path, _, _ := lists[0].OptionalPath()
	word := singular(path[len(path)-1])
	name := "all" + strings.ToUpper(word[:1]) + word[1:] + "s"
	if path[0] == "oldObject" {
		name = "old" + strings.ToUpper(name[3:4]) + name[4:]
	}
	return name
}

// listType is the type of a list that can be read without an error: every field
// on the way is always there, or an orValue stands in for it.
func (l *lowering) listType(list cel.Value) *schema.Type {
	path, defaulted, ok := list.OptionalPath()
	if !ok || path[0] != "object" && path[0] != "oldObject" {
		return nil
	}
	t := l.objectType(l.target)
	for _, name := range path[1:] {
		if t == nil || t.Kind != schema.Object {
			return nil
		}
		f, ok := t.Fields[name]
		if !ok || !f.Required && !defaulted {
			return nil
		}
		t = f.Type
	}
	if t == nil || t.Kind != schema.List {
		return nil
	}
	return t
}
