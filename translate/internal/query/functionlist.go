package query

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// length is the number of elements, entries or characters.
func length(l *read.Lowering, j read.Operand) read.Operand {
	switch j.Form {
	case read.LitForm:
		switch v := j.Lit.(type) {
		case string:
			return read.LitOf(float64(len([]rune(v))))
		case []any:
			return read.LitOf(float64(len(v)))
		case map[string]any:
			return read.LitOf(float64(len(v)))
		}
		return read.TypeError("length")
	case read.ImagesForm: // an error where there are none
		return read.IntOf(read.WithImage(l, j.Images).Size()).Demanding(read.Demand("", j.Images.Present(l)))
	case read.ErrorForm:
		return j
	case read.SequenceForm:
		return read.IntOf(j.S.Count(l, true)).Demanding(j.S.Demands(true))
	case read.MultiForm, read.HashForm:
		return read.LitOf(float64(len(j.Multi)))
	}
	switch j.V.Kind() {
	case schema.String, schema.List, schema.Map:
		return read.IntOf(j.V.Expr.Size())
	case schema.Object:
		return read.IntOf(read.Dyn(j.V.Expr).Size())
	case schema.Any, schema.IntOrString: // of a type that has a length, as was asked
		x, d, _ := read.Strictly(l, j)
		return read.IntOf(x.Size()).Demanding(d)
	}
	return read.TypeError("length")
}

func keysOf(l *read.Lowering, j read.Operand, values bool) read.Operand {
	switch j.Form {
	case read.ImagesForm:
		panic(l.Unsupported("the keys and values of images"))
	case read.ErrorForm:
		return j
	case read.LitForm:
		m, ok := j.Lit.(map[string]any)
		if !ok {
			return read.TypeError("keys")
		}
		if len(m) == 0 {
			return read.LitOf([]any{})
		}
		panic(l.Refuse(diag.NoFunction, "the keys and values of a map of the policy have no native form"))
	case read.HashForm:
		panic(l.Refuse(diag.NoFunction, "the keys and values of a map that is put together have no native form"))
	case read.PlaceForm:
		switch j.V.Kind() {
		case schema.Map, schema.Object:
			return read.SequenceOf(read.Entries{V: j.V, Values: values, Given: true})
		case schema.Any:
			return read.SequenceOf(read.Entries{V: j.V.ShapedBy(read.IsMap(j.V.Expr)).AsMap(), Values: values, Given: true})
		}
	}
	return read.TypeError("keys")
}

func toArray(l *read.Lowering, j read.Operand) read.Operand {
	switch j.Form {
	case read.SequenceForm:
		return arrayOf(j, j.S)
	case read.MultiForm:
		return j
	case read.LitForm:
		if _, ok := j.Lit.([]any); ok {
			return j
		}
		return read.LitOf([]any{j.Lit})
	case read.PlaceForm:
		if j.V.Kind() == schema.List {
			return arrayOf(j, read.AsSequence(l, j))
		}
		if j.V.Certain() && !j.V.Dynamic() {
			return read.SequenceOf(read.Concat{read.Single{J: j}})
		}
	}
	panic(l.Unsupported("this use of to_array"))
}

// arrayOf is j, a list whose elements are s, and [null] where j is null.
func arrayOf(j read.Operand, s read.Sequence) read.Operand {
	if null := s.Null(); !null.IsFalse() {
		return read.SequenceOf(read.Branch{C: null, Then: read.Concat{read.Single{J: read.LitOf(nil)}}, Els: read.OrEmpty{Sequence: s}})
	}
	return j
}

// sorted keeps a list as it is where CEL cannot sort yet: two sorted lists are
// then compared by what they hold.
func sorted(l *read.Lowering, j read.Operand) read.Operand {
	return read.InEach(j, func(j read.Operand) read.Operand {
		if list, ok := j.Lit.([]any); ok && j.Form == read.LitForm {
			return read.LitOf(scalar.Sorted(list))
		}
		s := read.AsSequence(l, j)
		if s == nil {
			return read.TypeError("sort")
		}
		switch read.KindOf(s.Elem()) {
		case schema.Object, schema.Map, schema.List, schema.Bool, schema.IntOrString, schema.Any:
			panic(l.Unsupported("sort() of what is neither texts nor numbers"))
		}
		return read.SequenceOf(read.SortedSequence{Sequence: s}).Demanding(read.Demand("", cel.Not(s.Null())))
	})
}

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
