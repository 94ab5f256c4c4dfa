package interp

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/interp/internal/wildcard"
)

// compareExactly tells whether an operator holds between a key and a value, as Kyverno
// does. A null key satisfies no operator, not even a negated one.
func compareExactly(key operand, operator string, value operand) (bool, error) {
	key, value = operand{value: key.value}, operand{value: value.value}
	switch strings.ToLower(operator) {
	case "equal", "equals":
		return equals(key.value, value.value), nil
	case "notequal", "notequals":
		return key.value != nil && !equals(key.value, value.value), nil
	case "greaterthanorequals", "greaterthan", "lessthanorequals", "lessthan":
		return ordered(key.value, operator, value.value), nil
	case "durationgreaterthanorequals", "durationgreaterthan", "durationlessthanorequals", "durationlessthan":
		return orderedDurations(key.value, operator, value.value), nil
	}
	return compareMembers(key, operator, value, compareText)
}

// compareFields is compareExactly with values that are what their fields are (deviation
// 15).
func compareFields(key operand, operator string, value operand) (bool, error) {
	switch strings.ToLower(operator) {
	case "equal", "equals":
		return sameOperands(key, value), nil
	case "notequal", "notequals":
		return key.value != nil && !sameOperands(key, value), nil
	case "greaterthanorequals", "greaterthan", "lessthanorequals", "lessthan":
		return orderedOperands(key, operator, value)
	case "durationgreaterthanorequals", "durationgreaterthan", "durationlessthanorequals", "durationlessthan":
		return orderedDurations(key.value, operator, value.value), nil
	}
	if key.from.Origin == expr.OfPolicy && value.from.Origin == expr.OfPolicy {
		return compareExactly(key, operator, value)
	}
	return compareMembers(key, operator, value.asList(), compareField(key.field))
}

// isMembership tells of In, NotIn and their successors.
func isMembership(operator string) bool { return strings.HasSuffix(strings.ToLower(operator), "in") }

// compareMembers is an operator of membership.
func compareMembers(key operand, operator string, value operand, c compareAtom) (bool, error) {
	switch strings.ToLower(operator) {
	case "in":
		return oldMembership(key, value, false)
	case "notin":
		return oldMembership(key, value, true)
	case "anyin":
		return c.membership(anyIn, key, value), nil
	case "allin":
		return c.membership(allIn, key, value), nil
	case "anynotin":
		return c.membership(anyNotIn, key, value), nil
	case "allnotin":
		return c.membership(allNotIn, key, value), nil
	}
	return false, fmt.Errorf("unknown operator %q", operator)
}

// equals compares by the type of the key. A number and a text that spells it are
// equal only where the text is the value.
func equals(key, value any) bool {
	switch k := key.(type) {
	case bool:
		v, ok := value.(bool)
		return ok && k == v
	case int64, float64:
		return equalsNumber(k, value)
	case string:
		return equalsText(k, value)
	case []any:
		v, ok := value.([]any)
		return ok && datum.Equal(k, v)
	case map[string]any:
		v, ok := value.(map[string]any)
		return ok && datum.Equal(k, v)
	}
	return false
}

func equalsNumber(key, value any) bool {
	switch v := value.(type) {
	case int64, float64:
		return datum.Compare(key, v) == 0
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return err == nil && datum.Compare(key, f) == 0
	}
	return false
}

// equalsText compares a string key. The value is the one that may hold
// wildcards, and does not when the key is a quantity.
func equalsText(key string, value any) bool {
	if k, v, ok := durationPair(key, value); ok {
		return k == v
	}
	v, ok := value.(string)
	if !ok {
		return false
	}
	if q, err := datum.ParseQuantity(key); err == nil {
		w, err := datum.ParseQuantity(v)
		return err == nil && q.Cmp(w) == 0
	}
	return wildcard.Match(v, key)
}

// ordered is GreaterThan and its relatives. The operator's spelling is exact.
func ordered(key any, operator string, value any) bool {
	op, ok := orderOperator(operator)
	if !ok {
		return false
	}
	switch k := key.(type) {
	case int64, float64:
		return orderedNumber(k, op, value)
	case string:
		return orderedText(k, op, value)
	}
	return false
}

func orderOperator(operator string) (textOperator, bool) {
	switch operator {
	case "GreaterThan":
		return opMore, true
	case "GreaterThanOrEquals":
		return opMoreEqual, true
	case "LessThan":
		return opLess, true
	case "LessThanOrEquals":
		return opLessEqual, true
	}
	return 0, false
}

func orderedNumber(key any, op textOperator, value any) bool {
	switch v := value.(type) {
	case int64, float64:
		c := datum.Compare(key, v)
		return c != 2 && satisfies(op, c)
	case string:
		if k, d, ok := durationPair(key, v); ok {
			return satisfies(op, datum.CompareInts(int64(k), int64(d)))
		}
		f, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return false
		}
		c := datum.Compare(key, f)
		return c != 2 && satisfies(op, c)
	}
	return false
}

// orderedText tries, in turn, durations, quantities, numbers and versions.
func orderedText(key string, op textOperator, value any) bool {
	if k, v, ok := durationPair(key, value); ok {
		return satisfies(op, datum.CompareInts(int64(k), int64(v)))
	}
	text, isText := value.(string)
	if isText {
		k, err := datum.ParseQuantity(key)
		if err == nil {
			if v, err := datum.ParseQuantity(text); err == nil {
				return satisfies(op, k.Cmp(v))
			}
		}
	}
	if f, err := strconv.ParseFloat(key, 64); err == nil {
		return orderedNumber(f, op, value)
	}
	k, err := semver.Parse(key)
	if err != nil || !isText {
		return false
	}
	v, err := semver.Parse(text)
	return err == nil && satisfies(op, k.Compare(v))
}

// durationPair reads key and value as durations, if one of them is written as
// one, and the other is too or is a number of seconds. The text 0 does not count
// as written so.
func durationPair(key, value any) (k, v time.Duration, ok bool) {
	k, keyIs := writtenDuration(key)
	v, valueIs := writtenDuration(value)
	switch {
	case keyIs && valueIs:
		return k, v, true
	case keyIs:
		v, ok = seconds(value)
	case valueIs:
		k, ok = seconds(key)
	}
	return k, v, ok
}

func writtenDuration(v any) (time.Duration, bool) {
	s, ok := v.(string)
	if !ok || s == "0" {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// seconds is a number of whole seconds; fractions are cut off.
func seconds(v any) (time.Duration, bool) {
	switch v := v.(type) {
	case int64:
		return time.Duration(v) * time.Second, true
	case float64:
		return time.Duration(v) * time.Second, true
	}
	return 0, false
}

// orderedDurations is DurationGreaterThan and its relatives.
func orderedDurations(key any, operator string, value any) bool {
	name, isDuration := strings.CutPrefix(operator, "Duration")
	op, ok := orderOperator(name)
	if !isDuration || !ok {
		return false
	}
	k, keyOK := anyDuration(key)
	v, valueOK := anyDuration(value)
	return keyOK && valueOK && satisfies(op, datum.CompareInts(int64(k), int64(v)))
}

func anyDuration(v any) (time.Duration, bool) {
	if s, ok := v.(string); ok {
		d, err := time.ParseDuration(s)
		return d, err == nil
	}
	return seconds(v)
}
