package interp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/interp/internal/datum"
)

// A memberOperator asks whether some or all elements of a list key are, or are
// not, in the value.
type memberOperator int

const (
	anyIn memberOperator = iota
	allIn
	anyNotIn
	allNotIn
)

// membership is AnyIn, AllIn, AnyNotIn and AllNotIn. A value that cannot be
// searched satisfies none of the four.
func (c compareAtom) membership(op memberOperator, key, value operand) bool {
	switch key.value.(type) {
	case string, bool, int64, float64:
		in, valid := c.scalarIn(key.word(), value)
		return valid && in == (op == anyIn || op == allIn)
	case []any:
		return c.listIn(op, key.list(), value)
	}
	return false
}

// scalarIn tells whether a single key is in the value, and whether the value
// is one that can be searched.
func (c compareAtom) scalarIn(key word, value operand) (in, valid bool) {
	switch v := value.value.(type) {
	case []any:
		return slices.ContainsFunc(value.list(), func(w word) bool { return alike(w, key) }), true
	case string:
		if value.word().matches(key.text) {
			return true, true
		}
		if operatorOf(v) == opInRange {
			return matchAlternatives(key.value(), v, c), true
		}
		if json.Valid([]byte(v)) {
			list, ok := jsonWords(v)
			return slices.Contains(list, key.text), ok
		}
		return key.text == v, true
	}
	return false, false
}

// listIn tells how the elements of a list key are in the value.
func (c compareAtom) listIn(op memberOperator, keys []word, value operand) bool {
	switch v := value.value.(type) {
	case []any:
		return listInList(op, keys, value.list())
	case int64, float64, bool:
		// AllIn and AllNotIn do not know single values.
		return (op == anyIn || op == anyNotIn) && listInList(op, keys, []word{value.word()})
	case string:
		return c.listInText(op, keys, v, value)
	}
	return false
}

func listInList(op memberOperator, keys, values []word) bool {
	missing := func(k word) bool {
		return !slices.ContainsFunc(values, func(v word) bool { return alike(k, v) })
	}
	found := func(k word) bool { return !missing(k) }
	switch op {
	case anyIn:
		return slices.ContainsFunc(keys, found)
	case allIn:
		return !slices.ContainsFunc(keys, missing)
	case anyNotIn:
		return slices.ContainsFunc(keys, missing)
	}
	return !slices.ContainsFunc(keys, found)
}

// listInText searches a text, which may be one element, a range, or a list in
// JSON.
func (c compareAtom) listInText(op memberOperator, keys []word, text string, value operand) bool {
	if len(keys) == 1 && keys[0].text == text {
		return op == anyIn || op == allIn
	}
	if operatorOf(text) == opInRange {
		return c.listInRange(op, keys, text)
	}
	if !json.Valid([]byte(text)) {
		return listInList(op, keys, []word{value.word()})
	}
	list, ok := jsonWords(text)
	if !ok {
		return false
	}
	words := make([]word, len(list))
	for i, s := range list {
		words[i] = plainWord(s)
	}
	return listInList(op, keys, words)
}

func (c compareAtom) listInRange(op memberOperator, keys []word, text string) bool {
	in := func(k word) bool { return matchAlternatives(k.value(), text, c) }
	switch op {
	case anyIn:
		return slices.ContainsFunc(keys, in)
	case allIn:
		return !slices.ContainsFunc(keys, func(k word) bool { return !in(k) })
	case anyNotIn:
		outside := strings.Replace(text, "-", "!-", 1)
		return slices.ContainsFunc(keys, func(k word) bool { return matchAlternatives(k.value(), outside, c) })
	}
	return !slices.ContainsFunc(keys, in)
}

// jsonWords reads a list of strings written as JSON.
func jsonWords(text string) ([]string, bool) {
	var list []string
	err := json.Unmarshal([]byte(text), &list)
	return list, err == nil
}

// oldMembership is In and NotIn, which differ from their successors where keys
// are lists: NotIn holds when any element is missing, elements are compared
// exactly, and one that is not a string is an error (deviation 4: Kyverno crashes).
func oldMembership(key, value operand, negated bool) (bool, error) {
	switch k := key.value.(type) {
	case string, bool, int64, float64:
		in, valid := scalarInOld(key.word(), value)
		return valid && in != negated, nil
	case []any:
		keys := make([]string, len(k))
		for i, item := range k {
			s, ok := item.(string)
			if !ok {
				return false, fmt.Errorf("the operators In and NotIn compare strings only, element %d of the key is %s", i, datum.TypeName(item))
			}
			keys[i] = s
		}
		return listInOld(keys, value.value, negated), nil
	}
	return false, nil
}

func scalarInOld(key word, value operand) (in, valid bool) {
	switch v := value.value.(type) {
	case []any:
		return slices.ContainsFunc(value.list(), func(w word) bool { return alike(w, key) }), true
	case string:
		if value.word().matches(key.text) {
			return true, true
		}
		list, ok := jsonWords(v)
		return slices.Contains(list, key.text), ok
	}
	return false, false
}

func listInOld(keys []string, value any, negated bool) bool {
	var values []string
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return false
			}
			values = append(values, s)
		}
	case string:
		if len(keys) == 1 && keys[0] == v {
			return true // for both: an old mistake that policies live with
		}
		list, ok := jsonWords(v)
		if !ok {
			return false
		}
		values = list
	default:
		return false
	}
	missing := slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(values, k) })
	return missing == negated
}
