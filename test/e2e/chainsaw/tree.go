//go:build e2e

package chainsaw

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	bindings "github.com/jmespath-community/go-jmespath/pkg/binding"
	"github.com/jmespath-community/go-jmespath/pkg/functions"
	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
	"github.com/jmespath-community/go-jmespath/pkg/parsing"
)

// A scope is what `$name` stands for in expressions.
type scope map[string]any

// with is the scope with one more name.
func (s scope) with(name string, value any) scope {
	more := maps.Clone(s)
	more[name] = value
	return more
}

// search evaluates a JMESPath expression.
func (s scope) search(expression string, data any) (any, error) {
	tree, err := parsing.NewParser().Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	names := bindings.NewBindings()
	for name, value := range s {
		names = names.Register("$"+name, value)
	}
	known := append(functions.GetDefaultFunctions(), functions.FunctionEntry{
		Name:      "trim_space",
		Arguments: []functions.ArgSpec{{Types: []functions.JpType{functions.JpString}}},
		Handler:   func(arguments []any) (any, error) { return strings.TrimSpace(arguments[0].(string)), nil },
	})
	value, err := interpreter.NewInterpreter(data, interpreter.NewFunctionCaller(known...), names).Execute(tree, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", expression, err)
	}
	return value, nil
}

// expressionOf is what stands between the parentheses of a text that is an expression.
func expressionOf(text string) (expression string, ok bool) {
	found := regexp.MustCompile(`^\((.+)\)$`).FindStringSubmatch(text)
	if found == nil {
		return "", false
	}
	return found[1], true
}

// resolve is a value with the expressions in it evaluated; names of fields stay.
func (s scope) resolve(value any) (any, error) {
	switch v := value.(type) {
	case string:
		if expression, ok := expressionOf(v); ok {
			return s.search(expression, nil)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			resolved, err := s.resolve(inner)
			if err != nil {
				return nil, err
			}
			out[name] = resolved
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			resolved, err := s.resolve(inner)
			if err != nil {
				return nil, err
			}
			out[i] = resolved
		}
		return out, nil
	}
	return value, nil
}

// differs says where a value is not as an assertion has it, and is empty where it is.
// A map may have more fields than are asserted, a list may not. A name in parentheses is
// an expression about the value, and what it comes to is asserted:
//
//	(length(containers)): 2
func (s scope) differs(asserted, value any, at string) (string, error) {
	switch want := asserted.(type) {
	case map[string]any:
		return s.differsMap(want, value, at)
	case []any:
		have := reflect.ValueOf(value)
		if value == nil || have.Kind() != reflect.Slice {
			return at + " is not a list", nil
		}
		if have.Len() != len(want) {
			return fmt.Sprintf("%s has %d elements, want %d", at, have.Len(), len(want)), nil
		}
		for i, inner := range want {
			if why, err := s.differs(inner, have.Index(i).Interface(), fmt.Sprintf("%s[%d]", at, i)); why != "" || err != nil {
				return why, err
			}
		}
		return "", nil
	case string:
		if expression, ok := expressionOf(want); ok {
			resolved, err := s.search(expression, value)
			if err != nil {
				return "", err
			}
			asserted = resolved
		}
	}
	if !reflect.DeepEqual(number(asserted), number(value)) {
		return fmt.Sprintf("%s is %v, want %v", at, value, asserted), nil
	}
	return "", nil
}

func (s scope) differsMap(want map[string]any, value any, at string) (string, error) {
	have, isMap := value.(map[string]any)
	if value == nil && len(want) == 0 {
		return at + " is not there", nil
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		inner, path := have[name], at+"."+name
		if expression, ok := expressionOf(name); ok {
			var err error
			if inner, err = s.search(expression, value); err != nil {
				return "", err
			}
		} else if !isMap {
			return at + " is not an object", nil
		}
		if why, err := s.differs(want[name], inner, path); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// number is a number of one type, and all else as it is.
func number(v any) any {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case int:
		return float64(n)
	case float64:
		if math.IsNaN(n) {
			return nil
		}
	}
	return v
}
