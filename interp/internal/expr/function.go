package expr

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// A function is one that expressions can call. Its arguments have the number and
// the types that the table of functions in jmespath asks for.
type function func(ev *evaluator, args []any) (any, error)

// callExpression evaluates the arguments, with null for those that name a missing
// key, and calls.
func (ev *evaluator) callExpression(e *jmespath.Expr, v Value) (Value, error) {
	args, data := make([]Value, len(e.Args)), make([]any, len(e.Args))
	for i, arg := range e.Args {
		value, err := ev.lenient(arg, v)
		if err != nil {
			return Value{}, err
		}
		if s, ok := value.Data.(Scope); ok {
			if value.Data, err = whole(s); err != nil {
				return Value{}, err
			}
		}
		args[i], data[i] = value, value.Data
	}
	if e.Func == jmespath.FuncUnknown {
		return Value{}, fmt.Errorf("unknown function: %s", e.Name)
	}
	out, err := ev.call(e.Func, data)
	if err != nil {
		return Value{}, err
	}
	return Value{out, provenanceOfCall(e.Func, args)}, nil
}

// provenanceOfCall is the provenance of what a function gives: of one that chooses, that of what it
// chose, and of the text of a value, that of the value.
func provenanceOfCall(f jmespath.Func, args []Value) Provenance {
	switch f {
	case jmespath.FuncNotNull:
		for _, arg := range args {
			if arg.Data != nil {
				return arg.From
			}
		}
	case jmespath.FuncToString:
		return args[0].From.printed()
	case jmespath.FuncLookup:
		if key, ok := args[1].Data.(string); ok {
			return args[0].From.Field(key)
		}
		if i, ok := datum.Whole(args[1].Data); ok && i >= 0 {
			return args[0].From.Element(int(i))
		}
	case jmespath.FuncToArray:
		if _, ok := args[0].Data.([]any); ok {
			return args[0].From
		}
		return Provenance{Origin: args[0].From.Origin, elements: []Provenance{args[0].From}}
	case jmespath.FuncTimeSince, jmespath.FuncTimeDiff:
		return Provenance{Origin: madeOf(args...).Origin, Duration: true}
	}
	return madeOf(args...)
}

// call calls a function after checking its arguments.
func (ev *evaluator) call(name jmespath.Func, args []any) (any, error) {
	signature := name.Signature()
	if !signature.Accepts(len(args)) {
		return nil, fmt.Errorf("invalid arity of %s(): %d arguments", name, len(args))
	}
	if !signature.Lax {
		for i, arg := range args {
			if want := signature.Param(i); !isOf(arg, want) {
				return nil, fmt.Errorf("invalid type of argument %d of %s(): expected %s, got %s", i+1, name, want, kindOf(arg))
			}
		}
	}
	ev.built = true
	value, err := functionOf(name)(ev, args)
	if err != nil {
		return nil, fmt.Errorf("%s(): %w", name, err)
	}
	switch v := value.(type) {
	case string:
		if err = ev.spend(len(v) >> 4); err == nil {
			err = ev.make(len(v))
		}
	case []any:
		err = ev.make(elementSize * len(v))
	}
	return value, err
}

// isOf tells whether a value has one of the types. A list of numbers or strings
// may be empty, but not one that items() made.
func isOf(v any, t jmespath.Type) bool {
	switch v := v.(type) {
	case nil:
		return t&jmespath.NullType != 0
	case bool:
		return t&jmespath.BoolType != 0
	case int64, float64:
		return t&jmespath.NumberType != 0
	case string:
		return t&jmespath.StringType != 0
	case map[string]any:
		return t&jmespath.ObjectType != 0
	case expression:
		return t&jmespath.ExprType != 0
	case itemList:
		return t&jmespath.ListType != 0
	case []any:
		return t&jmespath.ListType != 0 ||
			t&jmespath.NumberList != 0 && allAre(v, datum.IsNumber) ||
			t&jmespath.StringList != 0 && allAre(v, isString)
	}
	return false
}

func allAre(list []any, is func(any) bool) bool {
	return !slices.ContainsFunc(list, func(item any) bool { return !is(item) })
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

// kindOf is TypeName for everything that an argument can be.
func kindOf(v any) string {
	switch v.(type) {
	case itemList:
		return "a list"
	case expression:
		return "an &expression"
	}
	return datum.TypeName(v)
}

// plainList is a list that is not one of items(): Kyverno panics on those in the
// functions that ask for this.
func plainList(v any) ([]any, error) {
	if list, ok := v.([]any); ok {
		return list, nil
	}
	return nil, fmt.Errorf("the list of items() cannot be used directly; write items(...)[*]")
}

func functionOf(name jmespath.Func) function {
	for _, group := range []func(jmespath.Func) function{listFunction, textFunction, numberFunction, timeFunction, cryptoFunction, outsideFunction} {
		if f := group(name); f != nil {
			return f
		}
	}
	return nil
}

// onText is a function of one string.
func onText[T any](f func(string) T) function {
	return func(_ *evaluator, args []any) (any, error) { return f(args[0].(string)), nil }
}

// onTexts is a function of two strings.
func onTexts[T any](f func(a, b string) T) function {
	return func(_ *evaluator, args []any) (any, error) { return f(args[0].(string), args[1].(string)), nil }
}

// parsing is a function of strings that may fail.
func parsing(f func(args ...string) (any, error)) function {
	return func(_ *evaluator, args []any) (any, error) {
		texts := make([]string, len(args))
		for i, arg := range args {
			texts[i] = arg.(string)
		}
		return f(texts...)
	}
}

// onScalars is a function of strings and numbers, which it takes as text.
func onScalars(f func(ev *evaluator, args []string) (any, error)) function {
	return func(ev *evaluator, args []any) (any, error) {
		texts := make([]string, len(args))
		for i, arg := range args {
			text, err := scalarText(arg)
			if err != nil {
				return nil, err
			}
			texts[i] = text
		}
		return f(ev, texts)
	}
}

func textList(texts []string) []any {
	list := make([]any, len(texts))
	for i, s := range texts {
		list[i] = s
	}
	return list
}

// replacedSize tells whether replacing n matches by a text of a size keeps within
// bounds.
func replacedSize(text string, n int, by string) error {
	if n > 0 && len(by) > 0 && n > (maxTextSize-min(len(text), maxTextSize))/len(by) {
		return tooLong()
	}
	return nil
}

// replace replaces the first n occurrences; all of them if n is negative.
func replace(text, old, by string, n int) (any, error) {
	count := strings.Count(text, old)
	if n >= 0 {
		count = min(count, n)
	}
	if err := replacedSize(text, count, by); err != nil {
		return nil, err
	}
	return strings.Replace(text, old, by, n), nil
}

// Call calls a function by name, for those who are no expressions.
func Call(ctx context.Context, name string, args []any, around Surroundings) (any, error) {
	f := jmespath.FuncNamed(name)
	if f == jmespath.FuncUnknown {
		return nil, fmt.Errorf("unknown function: %s", name)
	}
	ev := newEvaluator(ctx, Value{}, around)
	defer ev.settle()
	return ev.call(f, args)
}
