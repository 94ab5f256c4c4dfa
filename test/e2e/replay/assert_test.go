//go:build e2e

package replay

import (
	"fmt"
	"reflect"
	"strings"
)

// differs says where what is there is not as an assertion has it, and is empty where
// it is. As with chainsaw, maps may have more than is asserted and lists may not.
func differs(asserted, have any, at string) string {
	switch want := asserted.(type) {
	case map[string]any:
		got, _ := have.(map[string]any)
		for k, v := range want {
			if why := differs(v, got[k], at+"."+k); why != "" {
				return why
			}
		}
		if have == nil && len(want) == 0 {
			return at + " is not there"
		}
		return ""
	case []any:
		got, _ := have.([]any)
		if len(got) != len(want) {
			return fmt.Sprintf("%s has %d elements, want %d", at, len(got), len(want))
		}
		for i, v := range want {
			if why := differs(v, got[i], fmt.Sprintf("%s[%d]", at, i)); why != "" {
				return why
			}
		}
		return ""
	}
	if !reflect.DeepEqual(number(asserted), number(have)) {
		return fmt.Sprintf("%s is %v, want %v", at, have, asserted)
	}
	return ""
}

// number is a number of one type, and all else as it is.
func number(v any) any {
	if n, ok := v.(int64); ok {
		return float64(n)
	}
	return v
}

// computes tells whether an assertion has an expression of chainsaw.
func computes(asserted any) bool {
	switch v := asserted.(type) {
	case map[string]any:
		for k, inner := range v {
			if computes(k) || computes(inner) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if computes(inner) {
				return true
			}
		}
	case string:
		return strings.HasPrefix(v, "(") && strings.HasSuffix(v, ")")
	}
	return false
}
