package expr

import (
	"errors"
	"fmt"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// eval evaluates e with v as the current node.
func (ev *evaluator) eval(e *jmespath.Expr, v Value) (Value, error) {
	if err := ev.spend(1); err != nil {
		return Value{}, err
	}
	switch e.Op {
	case jmespath.Current:
		return v, nil
	case jmespath.Field:
		return ev.field(e, v)
	case jmespath.Literal:
		return Value{e.Value, Provenance{Origin: ev.around.Written}}, nil
	case jmespath.RawString:
		text := ev.texts[e.Text]
		text.From = text.From.And(ev.around.Written)
		return text, nil
	case jmespath.Sub:
		left, err := ev.eval(e.Args[0], v)
		if err != nil {
			return Value{}, err
		}
		return ev.eval(e.Args[1], left)
	case jmespath.Index:
		return ev.index(e, v)
	case jmespath.Pipe:
		return ev.pipe(e, v)
	case jmespath.Or, jmespath.And:
		return ev.logical(e, v)
	case jmespath.Not:
		operand, err := ev.lenient(e.Args[0], v)
		return Value{IsFalse(operand.Data), madeOf(operand)}, err
	case jmespath.Compare:
		return ev.compare(e, v)
	case jmespath.Call:
		return ev.callExpression(e, v)
	case jmespath.ExpRef:
		return Value{expression{e.Args[0]}, Provenance{Origin: ev.wrote(e.Args[0])}}, nil
	case jmespath.MultiList, jmespath.MultiHash:
		return ev.multiselect(e, v)
	case jmespath.Slice:
		return ev.slice(e, v)
	case jmespath.Flatten:
		return ev.flatten(e, v)
	case jmespath.Projection, jmespath.ValueProjection, jmespath.Filter:
		return ev.projection(e, v)
	}
	return Value{}, fmt.Errorf("an expression of an unknown kind")
}

// wrote says who wrote an expression: the policy, and whoever its strings and names come from.
func (ev *evaluator) wrote(e *jmespath.Expr) Origin {
	origin := ev.around.Written
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		for _, t := range []*jmespath.Template{e.Text, e.Dynamic} {
			if t != nil {
				origin = max(origin, ev.texts[t].From.Origin)
			}
		}
		return e.Text == nil && e.Dynamic == nil
	})
	return origin
}

// lenient evaluates e, with null for a key that is missing.
func (ev *evaluator) lenient(e *jmespath.Expr, v Value) (Value, error) {
	value, err := ev.eval(e, v)
	if IsUnknownKey(err) {
		return Value{}, nil
	}
	return value, err
}

// IsUnknownKey tells whether an error is that a key does not exist.
func IsUnknownKey(err error) bool {
	if err == nil {
		return false
	}
	_, ok := errors.AsType[*unknownKeyError](err)
	return ok
}

// field looks a name up. What is not a map has no fields, and yields null; a map
// without the field is an error.
func (ev *evaluator) field(e *jmespath.Expr, v Value) (Value, error) {
	name := e.Name
	if e.Dynamic != nil {
		name = ev.texts[e.Dynamic].Data.(string)
	}
	switch data := v.Data.(type) {
	case map[string]any:
		if value, ok := data[name]; ok {
			return Value{value, v.From.Field(name)}, nil
		}
		return Value{}, &unknownKeyError{name}
	case Scope:
		value, found, err := data.Lookup(name)
		if err == nil && !found {
			err = &unknownKeyError{name}
		}
		return value, err
	}
	return Value{}, nil
}

func (ev *evaluator) index(e *jmespath.Expr, v Value) (Value, error) {
	left, err := ev.eval(e.Args[0], v)
	if err != nil {
		return Value{}, err
	}
	list, _ := asList(left.Data)
	i := e.Num
	if i < 0 {
		i += len(list)
	}
	if i < 0 || i >= len(list) {
		return Value{}, nil
	}
	return Value{list[i], left.From.Element(i)}, nil
}

// pipe gives null where a stage names a missing key, also the last one.
func (ev *evaluator) pipe(e *jmespath.Expr, v Value) (Value, error) {
	left, err := ev.lenient(e.Args[0], v)
	if err != nil {
		return Value{}, err
	}
	return ev.lenient(e.Args[1], left)
}

// logical is || and &&. Only the right side of && may name a missing key.
func (ev *evaluator) logical(e *jmespath.Expr, v Value) (Value, error) {
	left, err := ev.lenient(e.Args[0], v)
	if err != nil {
		return Value{}, err
	}
	switch {
	case e.Op == jmespath.Or && IsFalse(left.Data):
		return ev.lenient(e.Args[1], v)
	case e.Op == jmespath.And && !IsFalse(left.Data):
		return ev.eval(e.Args[1], v)
	}
	return left, nil
}

// IsFalse tells whether a value counts as false; 0 does not.
func IsFalse(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case map[string]any:
		return len(v) == 0
	}
	list, ok := asList(v)
	return ok && len(list) == 0
}

// compare is == and != for any values, by type and value, and the orders for
// numbers only: anything else gives null. Kyverno takes some integers for
// another type than numbers; here there is one type (deviations 7 and 8).
func (ev *evaluator) compare(e *jmespath.Expr, v Value) (Value, error) {
	left, err := ev.lenient(e.Args[0], v)
	if err != nil {
		return Value{}, err
	}
	right, err := ev.lenient(e.Args[1], v)
	if err != nil {
		return Value{}, err
	}
	out := Value{From: madeOf(left, right)}
	switch e.Comparator {
	case jmespath.Equal, jmespath.NotEqual:
		same, err := ev.equal(left.Data, right.Data)
		out.Data = same == (e.Comparator == jmespath.Equal)
		return out, err
	}
	if !datum.IsNumber(left.Data) || !datum.IsNumber(right.Data) {
		return out, nil
	}
	c := datum.Compare(left.Data, right.Data)
	switch e.Comparator {
	case jmespath.Less:
		out.Data = c == -1
	case jmespath.LessEqual:
		out.Data = c == -1 || c == 0
	case jmespath.Greater:
		out.Data = c == 1
	default:
		out.Data = c == 1 || c == 0
	}
	return out, nil
}

func (ev *evaluator) equal(a, b any) (bool, error) {
	for _, v := range []*any{&a, &b} {
		if s, ok := (*v).(Scope); ok {
			value, err := whole(s)
			if err != nil {
				return false, err
			}
			*v = value
		}
		if err := ev.measure(*v); err != nil {
			return false, err
		}
	}
	return datum.Equal(a, b), nil
}

// multiselect is [a, b] and {k: a}. Of null they are null.
func (ev *evaluator) multiselect(e *jmespath.Expr, v Value) (Value, error) {
	ev.built = true
	if v.Data == nil {
		return Value{}, nil
	}
	if err := ev.make(provenanceSize * len(e.Args)); err != nil {
		return Value{}, err
	}
	values, parts := make([]any, len(e.Args)), make(map[string]Provenance, len(e.Keys))
	var from ListProvenance
	for i, arg := range e.Args {
		value, err := ev.lenient(arg, v)
		if err != nil {
			return Value{}, err
		}
		values[i] = value.Data
		if e.Op == jmespath.MultiList {
			from.Add(value.From)
		} else {
			parts[e.Keys[i]] = value.From
		}
	}
	if e.Op == jmespath.MultiList {
		return Value{values, from.Provenance()}, nil
	}
	m := make(map[string]any, len(values))
	for i, key := range e.Keys {
		m[key] = values[i]
	}
	return Value{m, MapOf(parts)}, nil
}
