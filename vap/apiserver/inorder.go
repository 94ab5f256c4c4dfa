package apiserver

import (
	"cmp"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// An inOrder makes values of which maps are read in the order of their keys: in that
// of Go's maps, what stops at the first key that it looks for costs something else in
// each run.
type inOrder struct{ types.Adapter }

// NativeToValue makes a value. Elements of lists and maps are made when they are read.
func (o inOrder) NativeToValue(native any) ref.Val {
	var value ref.Val
	switch n := native.(type) {
	case []any:
		value = types.NewDynamicList(o, n)
	case map[string]any:
		value = types.NewStringInterfaceMap(o, n)
	default:
		value = o.Adapter.NativeToValue(native)
	}
	return ordered(value)
}

// literalsInOrder does the same for maps that are written in an expression, which no
// adapter makes. One of constants is a constant, and costs nothing.
func literalsInOrder(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	c, ok := i.(interpreter.InterpretableConstructor)
	if !ok || c.Type() != types.MapType {
		return i, nil
	}
	for _, part := range c.InitVals() {
		if _, constant := part.(interpreter.InterpretableConst); !constant {
			return literalMap{c}, nil
		}
	}
	return interpreter.NewConstValue(c.ID(), ordered(c.Eval(interpreter.EmptyActivation()))), nil
}

// A literalMap makes a map of what it evaluates.
type literalMap struct {
	interpreter.InterpretableConstructor
}

// Exec makes the map.
func (m literalMap) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return ordered(m.InterpretableConstructor.Exec(frame))
}

// ordered is a value that is read in the order of its keys, if it is a map.
func ordered(value ref.Val) ref.Val {
	switch v := value.(type) {
	case orderedMap, growingMap:
		return value
	case traits.MutableMapper:
		return growingMap{v}
	case traits.Mapper:
		return orderedMap{v}
	}
	return value
}

// An orderedMap is not Foldable, so that all that reads it asks for the Iterator.
type orderedMap struct{ traits.Mapper }

// Iterator gives the keys in order.
func (m orderedMap) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, keyOrder)
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

// IsZeroValue tells that the map is empty.
func (m orderedMap) IsZeroValue() bool { return m.Size() == types.IntZero }

// keyOrder compares keys, which may be of several types.
func keyOrder(a, b ref.Val) int {
	if byType := cmp.Compare(a.Type().TypeName(), b.Type().TypeName()); byType != 0 {
		return byType
	}
	order, _ := a.(traits.Comparer).Compare(b).(types.Int)
	return int(order)
}

// A growingMap is one that a macro makes.
type growingMap struct{ traits.MutableMapper }

// ToImmutableMap is the map that was made.
func (m growingMap) ToImmutableMap() traits.Mapper {
	return orderedMap{m.MutableMapper.ToImmutableMap()}
}
