package translate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
)

// An atom is one comparison of a string pattern with an operand.
type atom struct {
	op      string // == != < <= > >=
	operand string
}

// A term is one of the conditions that a string pattern joins with &: a comparison,
// or a range, which is two of them. The outside of a range is a term of which
// either may hold; of any other term all must.
type term struct {
	atoms  []atom
	either bool
}

// parsePattern splits a string pattern into alternatives of terms that must all
// hold. It never multiplies them out: many ranges in one pattern stay as few terms.
func parsePattern(p string) [][]term {
	var out [][]term
	for _, alt := range strings.Split(p, "|") {
		var terms []term
		for _, part := range strings.Split(alt, "&") {
			terms = append(terms, parseTerm(strings.TrimSpace(part)))
		}
		out = append(out, terms)
	}
	return out
}

var (
	insideRange  = regexp.MustCompile(`^([-|+]?\d+(?:\.\d+)?[A-Za-z]*)-([-|+]?\d+(?:\.\d+)?[A-Za-z]*)$`)
	outsideRange = regexp.MustCompile(`^([-|+]?\d+(?:\.\d+)?[A-Za-z]*)!-([-|+]?\d+(?:\.\d+)?[A-Za-z]*)$`)
)

// parseTerm reads one comparison or range.
func parseTerm(s string) term {
	one := func(op, rest string) term { return term{atoms: []atom{{op, strings.TrimSpace(rest)}}} }
	if len(s) < 2 {
		return one("==", s)
	}
	for _, op := range []string{">=", "<=", ">", "<"} {
		if rest, ok := strings.CutPrefix(s, op); ok {
			return one(op, rest)
		}
	}
	if rest, ok := strings.CutPrefix(s, "!"); ok {
		return one("!=", rest)
	}
	if m := outsideRange.FindStringSubmatch(s); m != nil {
		return term{atoms: []atom{{"<", m[1]}, {">", m[2]}}, either: true}
	}
	if m := insideRange.FindStringSubmatch(s); m != nil {
		return term{atoms: []atom{{">=", m[1]}, {"<=", m[2]}}}
	}
	return one("==", s)
}

// combine is the pattern, given how one atom reads. Several alternatives that are
// equalities of the same value become one membership.
func combine(p string, one func(atom) cel.Bool) cel.Bool {
	var alts []cel.Bool
	for _, alt := range parsePattern(p) {
		var conds []cel.Bool
		for _, t := range alt {
			conds = append(conds, t.build(one))
		}
		alts = append(alts, cel.And(conds...))
	}
	return cel.Or(alts...)
}

func (t term) build(one func(atom) cel.Bool) cel.Bool {
	var parts []cel.Bool
	for _, a := range t.atoms {
		parts = append(parts, one(a))
	}
	if t.either {
		return cel.Or(parts...)
	}
	return cel.And(parts...)
}

// patternString is: the string v satisfies p.
func (l *lowering) patternString(v cel.Value, p, format string) cel.Bool {
	if words, ok := wordList(p); ok && format != "quantity" {
		return oneOf(v, words)
	}
	out := combine(p, func(a atom) cel.Bool {
		if format == "quantity" {
			return atomQuantity(v, a)
		}
		return atomString(v, a)
	})
	// a value that is the very text of the pattern satisfies it
	if format != "quantity" && !patternHolds(p, p) {
		return cel.Or(v.Eq(cel.String(p)), out)
	}
	return out
}

// wordList reads a pattern that is nothing but alternatives of plain words.
func wordList(p string) ([]string, bool) {
	var words []string
	for _, alt := range parsePattern(p) {
		if len(alt) != 1 || len(alt[0].atoms) != 1 {
			return nil, false
		}
		a := alt[0].atoms[0]
		if a.op != "==" || isWild(a.operand) || numeric(a.operand) {
			return nil, false
		}
		words = append(words, a.operand)
	}
	if len(words) > 1 {
		words = append(words, p) // the very text of the pattern
	}
	return words, true
}

// numeric tells that an operand is compared as a duration or quantity where it can be.
func numeric(s string) bool {
	_, d := parseDuration(s)
	_, q := parseQuantity(s)
	return d || q
}

func oneOf(v cel.Value, words []string) cel.Bool {
	if len(words) == 1 {
		return v.Eq(cel.String(words[0]))
	}
	return v.In(cel.Strings(words...))
}

func atomString(v cel.Value, a atom) cel.Bool {
	_, isDur := parseDuration(a.operand)
	_, isQty := parseQuantity(a.operand)
	if !isDur && !isQty {
		switch a.op {
		case "==":
			return wild(v, a.operand)
		case "!=":
			return cel.Not(wild(v, a.operand))
		}
		return cel.False()
	}
	op := a.op
	if op == "!=" { // where neither applies, a text differs from an operand that is a number
		return cel.Not(atomString(v, atom{"==", a.operand}))
	}
	var alts []cel.Bool
	asDur := cel.And(isDuration(v), compareDurationIf(isDur, v, op, a.operand))
	if isDur {
		alts = append(alts, asDur)
	}
	if isQty {
		q := cel.And(isQuantity(v), compareQuantity(v, op, a.operand))
		if isDur {
			q = cel.And(cel.Not(isDuration(v)), q)
		}
		alts = append(alts, q)
	}
	return cel.Or(alts...)
}

func compareDurationIf(ok bool, v cel.Value, op, operand string) cel.Bool {
	if !ok {
		return cel.False()
	}
	return compareDuration(v, op, operand)
}

// atomQuantity is for a value that is a canonical quantity. Durations and
// quantities that share a suffix are in the same order.
func atomQuantity(v cel.Value, a atom) cel.Bool {
	if _, ok := parseQuantity(a.operand); !ok {
		if p := collapse(a.operand); a.op == "==" && (p == "?*" || p == "*?") { // no quantity is empty
			return cel.True()
		}
		return atomString(v, a)
	}
	return compareQuantity(v, a.op, a.operand)
}

// patternInt is: the integer v satisfies p.
func (l *lowering) patternInt(v cel.Value, p string) cel.Bool {
	return combine(p, func(a atom) cel.Bool {
		if q, ok := parseQuantity(a.operand); ok {
			return compareInt(v, a.op, q)
		}
		if d, ok := parseDuration(a.operand); ok { // of the integers only 0 is a duration
			return cel.And(v.Eq(cel.Int(0)), cel.Lit(ordered(a.op, sign(0, int64(d)))))
		}
		return intText(v, a)
	})
}

// intText compares the decimal text of an integer.
func intText(v cel.Value, a atom) cel.Bool {
	var same cel.Bool
	switch {
	case a.op != "==" && a.op != "!=":
		return cel.False()
	case strings.Trim(a.operand, "*") == "" && a.operand != "", collapse(a.operand) == "?*", collapse(a.operand) == "*?":
		same = cel.True()
	case !isWild(a.operand) || strings.Trim(a.operand, "*?-0123456789") != "":
		same = cel.False() // no integer reads like this
	default:
		same = wild(cel.Func("string", v), a.operand)
	}
	if a.op == "!=" {
		return cel.Not(same)
	}
	return same
}

// patternDouble is: the number v, which may be a fraction, satisfies p.
func (l *lowering) patternDouble(v cel.Value, p string) cel.Bool {
	return combine(p, func(a atom) cel.Bool {
		if q, ok := parseQuantity(a.operand); ok {
			return compareNumber(v, a.op, q)
		}
		if d, ok := parseDuration(a.operand); ok {
			return cel.And(v.Eq(cel.Int(0)), cel.Lit(ordered(a.op, sign(0, int64(d)))))
		}
		return intText(v, a)
	})
}

// patternAny is: v, whose type is not known, satisfies p. Lists and maps do not.
func (l *lowering) patternAny(v cel.Value, p string) cel.Bool {
	str := l.patternString(v, p, "")
	num := l.patternDouble(v, p)
	t, f := patternHolds(true, p), patternHolds(false, p)
	null := patternHolds(nil, p)
	if t && f && num.IsTrue() && !null { // ?* and the like: any scalar, but not every string
		return cel.And(isScalar(v), cel.Or(cel.Not(isString(v)), str))
	}
	if words, ok := wordList(p); ok { // comparing with == needs no guard
		str = oneOf(v, words)
	} else {
		str = cel.And(isString(v), str)
	}
	if null {
		str = cel.Or(isNull(v), str)
	}
	if !num.IsFalse() {
		num = cel.And(isNumber(v), num)
	}
	return cel.Or(str, num, boolAny(v, t, f))
}

func boolAny(v cel.Value, t, f bool) cel.Bool {
	var alts []cel.Bool
	if t {
		alts = append(alts, v.Eq(cel.Lit(true).Value))
	}
	if f {
		alts = append(alts, v.Eq(cel.Lit(false).Value))
	}
	return cel.Or(alts...)
}

// What follows judges values that are known when compiling: literals for orValue,
// null, and the two booleans.

// nullSatisfies tells whether a missing value satisfies p.
func nullSatisfies(p *policy.Node) bool { return isRuntime(p) || literalSatisfies(nil, p) }

// literalSatisfies tells whether v (nil, bool, int64, float64 or string) satisfies p.
func literalSatisfies(v any, p *policy.Node) bool {
	switch p.Kind {
	case policy.Null:
		return v == nil || v == false || v == int64(0) || v == 0.0 || v == ""
	case policy.Bool:
		return v == p.Bool
	case policy.Int, policy.Float:
		switch v := v.(type) {
		case int64:
			return float64(v) == number(p)
		case float64:
			return v == number(p)
		case string:
			if p.Kind == policy.Int {
				n, err := strconv.ParseInt(v, 10, 64)
				return err == nil && n == p.Int
			}
			f, err := strconv.ParseFloat(v, 64)
			return err == nil && f == p.Float
		}
	case policy.String:
		return v == p.Str || patternHolds(v, p.Str)
	}
	return false
}

// patternHolds tells whether a literal satisfies a string pattern, the rule that
// a text satisfies itself left aside.
func patternHolds(v any, p string) bool {
	for _, alt := range parsePattern(p) {
		if !slices.ContainsFunc(alt, func(t term) bool { return !t.holds(v) }) {
			return true
		}
	}
	return false
}

func (t term) holds(v any) bool {
	satisfied := func(a atom) bool { return atomHolds(v, a) }
	if t.either {
		return slices.ContainsFunc(t.atoms, satisfied)
	}
	return !slices.ContainsFunc(t.atoms, func(a atom) bool { return !satisfied(a) })
}

func atomHolds(v any, a atom) bool {
	number, text := v, ""
	switch x := v.(type) {
	case nil:
		number = "0"
	case bool:
		number, text = nil, strconv.FormatBool(x)
	case int64:
		number, text = strconv.FormatInt(x, 10), strconv.FormatInt(x, 10)
	case float64:
		number, text = strconv.FormatFloat(x, 'f', 6, 64), strconv.FormatFloat(x, 'E', -1, 64)
	case string:
		text = x
	}
	if n, ok := number.(string); ok {
		if c, ok := compareTexts(n, a.operand); ok {
			return ordered(a.op, c)
		}
	}
	if v == nil {
		return false
	}
	switch a.op {
	case "==":
		return wildMatch(a.operand, text)
	case "!=":
		return !wildMatch(a.operand, text)
	}
	return false
}

// compareTexts compares two texts as durations or as quantities, where both are.
func compareTexts(a, b string) (int, bool) {
	if d, ok := parseDuration(a); ok {
		if e, ok := parseDuration(b); ok {
			return sign(int64(d), int64(e)), true
		}
	}
	if q, ok := parseQuantity(a); ok {
		if r, ok := parseQuantity(b); ok {
			return q.Cmp(r), true
		}
	}
	return 0, false
}

func sign(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// ordered tells whether a comparison's sign satisfies an operator.
func ordered(op string, c int) bool {
	switch op {
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// number is the value of a numeric node.
func number(p *policy.Node) float64 {
	if p.Kind == policy.Int {
		return float64(p.Int)
	}
	return p.Float
}
