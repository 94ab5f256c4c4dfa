package query

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

// JoinLists is a variable that holds the lists one after the other.
func JoinLists(l *read.Lowering, lists []cel.Value) cel.Value {
	sum := lists[0]
	certain := 0
	for i, list := range lists { // the list that is always there comes first
		if _, defaulted, _ := list.OptionalPath(); !defaulted && certain == 0 {
			lists[0], lists[i] = lists[i], lists[0]
			sum, certain = lists[0], 1
		}
	}
	for _, list := range lists[1:] {
		sum = sum.Plus(read.Dyn(list)) // to the type checker, elements of different fields are of different types
	}
	v := read.Let(l, listName(lists), sum)
	if path, ok := v.Path(); ok {
		if l.ListTypes == nil {
			l.ListTypes = map[string]*schema.Type{}
		}
		l.ListTypes[path[1]] = ListType(l, lists[0])
	}
	return v
}

// listName is allContainers for containers and initContainers.
func listName(lists []cel.Value) string {
	path, _, _ := lists[0].OptionalPath()
	word := read.Singular(path[len(path)-1])
	name := "all" + strings.ToUpper(word[:1]) + word[1:] + "s"
	if path[0] == "oldObject" {
		name = "old" + strings.ToUpper(name[3:4]) + name[4:]
	}
	return name
}

// ListType is the type of a list that can be read without an error: every field
// on the way is always there, or an orValue stands in for it.
func ListType(l *read.Lowering, list cel.Value) *schema.Type {
	path, defaulted, ok := list.OptionalPath()
	if !ok || path[0] != "object" && path[0] != "oldObject" {
		return nil
	}
	t := read.ObjectType(l, l.Target)
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
