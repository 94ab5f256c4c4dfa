package cel

import (
	"maps"
	"slices"
)

// Data is what JSON holds as a literal of no type. Maps and lists of several types are
// dynamic inside, for CEL wants one type of their values.
func Data(data any) Value { return Func(FuncDyn, literalOf(data)) }

func literalOf(data any) Value {
	switch d := data.(type) {
	case bool:
		return Lit(d).Value
	case int64:
		return Int(d)
	case float64:
		return Double(d)
	case string:
		return String(d)
	case []any:
		items := make([]Value, len(d))
		for i, item := range d {
			items[i] = literalOf(item)
		}
		return List(sameType(items)...)
	case map[string]any:
		keys := slices.Sorted(maps.Keys(d))
		values := make([]Value, len(keys))
		for i, k := range keys {
			values[i] = literalOf(d[k])
		}
		entries := make([]Entry, len(keys))
		for i, v := range sameType(values) {
			entries[i] = Entry{Key: String(keys[i]), Value: v}
		}
		return Map(entries...)
	}
	return Null()
}

// sameType is values of one type: texts as they are, anything else dynamic.
func sameType(values []Value) []Value {
	if !slices.ContainsFunc(values, func(v Value) bool { return v.n.op != opString }) {
		return values
	}
	for i, v := range values {
		values[i] = Func(FuncDyn, v)
	}
	return values
}
