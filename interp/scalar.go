package interp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/wildcard"
)

// matchScalar tells whether a value of the object satisfies a scalar of a
// pattern. A missing value is nil.
func (r reading) matchScalar(value any, field Format, pattern any) bool {
	switch p := pattern.(type) {
	case given:
		theirs := matchScalarExactly(value, p.value)
		return r.choose(15, p.matches(value, field), theirs)
	case int64, float64:
		exact := matchScalarExactly(value, pattern)
		_, isText := value.(string)
		return r.choose(15, exact && !(isText && field == IntOrString), exact)
	case string:
		return r.matchText(value, field, p)
	}
	return matchScalarExactly(value, pattern)
}

// matchScalarExactly is matchScalar as Kyverno has it.
func matchScalarExactly(value, pattern any) bool {
	switch p := pattern.(type) {
	case bool:
		v, ok := value.(bool)
		return ok && v == p
	case int64:
		return matchInt(value, p)
	case float64:
		return matchFloat(value, p)
	case nil:
		return isZero(value)
	case string:
		text, ok := value.(string)
		return ok && text == p || matchAlternatives(value, p, compareText)
	case map[string]any:
		_, ok := value.(map[string]any)
		return ok
	}
	return false
}

func matchInt(value any, p int64) bool {
	switch v := value.(type) {
	case int64:
		return v == p
	case float64:
		return v == math.Trunc(v) && int64(v) == p
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && n == p
	}
	return false
}

func matchFloat(value any, p float64) bool {
	switch v := value.(type) {
	case int64:
		return p == math.Trunc(p) && int64(p) == v
	case float64:
		return v == p
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return err == nil && f == p
	}
	return false
}

func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case int64:
		return v == 0
	case float64:
		return v == 0
	case string:
		return v == ""
	case bool:
		return !v
	}
	return false
}

// matchText tells whether a value satisfies a string of a pattern: alternatives
// by |, each of them atoms joined by &. To Kyverno, a value that is the pattern's own text
// matches whatever the pattern says (deviation 13), and any other is read in every way that
// it may be (deviation 15).
func (r reading) matchText(value any, field Format, pattern string) bool {
	ours := matchAlternatives(value, pattern, compareField(field))
	if text, ok := value.(string); ok && text == pattern {
		return r.choose(13, ours, true)
	}
	return r.choose(15, ours, matchAlternatives(value, pattern, compareText))
}

// A compareAtom compares a value with the operand of an atom.
type compareAtom func(value any, operand string, op textOperator) bool

func matchAlternatives(value any, pattern string, compare compareAtom) bool {
	for alternative := range strings.SplitSeq(pattern, "|") {
		if matchAll(value, strings.TrimSpace(alternative), compare) {
			return true
		}
	}
	return false
}

func matchAll(value any, alternative string, compare compareAtom) bool {
	for atom := range strings.SplitSeq(alternative, "&") {
		if !matchAtom(value, strings.TrimSpace(atom), compare) {
			return false
		}
	}
	return true
}

// A textOperator is what stands in front of, or inside, an atom of a string
// pattern.
type textOperator int

const (
	opEqual textOperator = iota
	opNotEqual
	opMore
	opMoreEqual
	opLess
	opLessEqual
	opInRange
	opNotInRange
)

func matchAtom(value any, atom string, compare compareAtom) bool {
	switch op := operatorOf(atom); op {
	case opInRange:
		low, high, _ := splitRange(atom, "-")
		return compare(value, low, opMoreEqual) && compare(value, high, opLessEqual)
	case opNotInRange:
		low, high, _ := splitRange(atom, "!-")
		return compare(value, low, opLess) || compare(value, high, opMore)
	default:
		return compare(value, strings.TrimSpace(atom[len(op.prefix()):]), op)
	}
}

// prefix is the text of an operator that stands in front of its operand.
func (op textOperator) prefix() string {
	switch op {
	case opNotEqual:
		return "!"
	case opMore:
		return ">"
	case opMoreEqual:
		return ">="
	case opLess:
		return "<"
	case opLessEqual:
		return "<="
	default:
		return ""
	}
}

// operatorOf detects the operator of an atom. A single character is never an
// operator.
func operatorOf(atom string) textOperator {
	if len(atom) < 2 {
		return opEqual
	}
	for _, op := range []textOperator{opMoreEqual, opLessEqual, opMore, opLess, opNotEqual} {
		if strings.HasPrefix(atom, op.prefix()) {
			return op
		}
	}
	if _, _, ok := splitRange(atom, "!-"); ok {
		return opNotInRange
	}
	if _, _, ok := splitRange(atom, "-"); ok {
		return opInRange
	}
	return opEqual
}

// splitRange splits A-B or A!-B, where A and B are numbers with an optional
// sign, fraction and unit of letters. Compound durations and exponents are no
// such numbers.
func splitRange(atom, separator string) (low, high string, ok bool) {
	n := bound(atom)
	if n == 0 || !strings.HasPrefix(atom[n:], separator) {
		return "", "", false
	}
	low, high = atom[:n], atom[n+len(separator):]
	return low, high, high != "" && bound(high) == len(high)
}

// bound is the length of the range bound at the front of s, or 0. A bound has
// one reading only: none of its parts can begin the next.
func bound(s string) int {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+' || s[i] == '|') {
		i++
	}
	digits := datum.CountDigits(s[i:])
	if digits == 0 {
		return 0
	}
	i += digits
	if i < len(s) && s[i] == '.' {
		if n := datum.CountDigits(s[i+1:]); n > 0 {
			i += 1 + n
		}
	}
	for i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z') {
		i++
	}
	return i
}

// compareText compares a value with the operand of an atom: as durations if
// both are, else as quantities if both are, else as text.
func compareText(value any, operand string, op textOperator) bool {
	if d, err := time.ParseDuration(operand); err == nil {
		if text, ok := measure(value); ok {
			if v, err := time.ParseDuration(text); err == nil {
				return satisfies(op, datum.CompareInts(int64(v), int64(d)))
			}
		}
	}
	if q, err := datum.ParseQuantity(operand); err == nil {
		if text, ok := measure(value); ok {
			if v, err := datum.ParseQuantity(text); err == nil {
				return satisfies(op, v.Cmp(q))
			}
		}
	}
	return matchWords(value, operand, op)
}

// matchWords compares a value with an operand as text. null, maps and lists
// have no text: they are neither equal nor unequal to any.
func matchWords(value any, operand string, op textOperator) bool {
	if op != opEqual && op != opNotEqual {
		return false
	}
	text, ok := wordsOf(value)
	return ok && wildcard.Match(operand, text) == (op == opEqual)
}

// wordsOf is a value as text.
func wordsOf(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return floatText(v, 'E'), true
	}
	return "", false
}

// measure is the text of a value that is compared as a duration or quantity. A
// missing value counts as zero.
func measure(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "0", true
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return fmt.Sprintf("%f", v), true
	}
	return "", false
}

// floatText is a number as text. Whole numbers print as integers, whichever Go
// type carries them (deviation 7); Kyverno prints those of some origins with
// an exponent.
func floatText(f float64, format byte) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, format, -1, 64)
}

// satisfies tells whether a comparison's result, negative, zero or positive, is
// what the operator asks for.
func satisfies(op textOperator, cmp int) bool {
	switch op {
	case opEqual:
		return cmp == 0
	case opNotEqual:
		return cmp != 0
	case opMore:
		return cmp > 0
	case opMoreEqual:
		return cmp >= 0
	case opLess:
		return cmp < 0
	case opLessEqual:
		return cmp <= 0
	default:
		return false
	}
}
