package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// membership is AnyIn, AllIn, AnyNotIn and AllNotIn.
func (l *lowering) membership(op string, key, value jval) cel.Bool {
	key = key.over(l.asList)
	if s, ok := value.lit.(string); ok && value.form == litForm {
		return l.membershipText(op, key, s)
	}
	switch {
	case isConfigured(value):
		return l.inConfigured(op, key, value)
	case value.form == litForm:
		list, ok := value.lit.([]any)
		if !ok {
			return l.membershipScalar(op, key, value)
		}
		return l.inSet(op, key, literalSet(list), value)
	case value.form == multiForm:
		return l.inSet(op, key, valueSet{l, value}, value)
	case value.form == streamForm || kindOf(value.typ()) == schema.List:
		list := l.asList(value).s
		there := l.thereFor(op, list)
		if elemConfigured(list) {
			return cel.And(there, l.inSet(op, key, configSet{l, list}, value))
		}
		return cel.And(there, l.inSet(op, key, streamSet{l, list}, value))
	}
	if k, ok := key.lit.(string); ok && key.form == litForm && kindOf(value.typ()) == schema.String && !strings.HasSuffix(op, "notin") {
		return l.inRequestText(k, value)
	}
	panic(l.unsupported("a membership in a value whose type is not known"))
}

// thereFor is what an operator asks of its list before it looks at the elements:
// null is no list to it. Nothing is in a list that reads as empty where it is null.
func (l *lowering) thereFor(op string, list stream) cel.Bool {
	if _, ok := list.(strictList); op == "anyin" && !ok {
		return cel.True()
	}
	return cel.Not(list.null())
}

// inRequestText is: a word of the policy is in a text of the request, which is
// when they are the same. The text is no pattern (deviation 9).
func (l *lowering) inRequestText(k string, value jval) cel.Bool {
	if numeric(k) {
		panic(l.unsupported("the membership of a number in a text of the request"))
	}
	l.note(diag.RequestText, "a text of the request is compared as it is; Kyverno reads one that is a JSON list as the list")
	return l.holds(value, true, pred{
		lit:     func(v any) cel.Bool { return cel.Lit(v == k) },
		value:   func(x cel.Value, _ *schema.Type) cel.Bool { return literalSet{k}.has(x, stringType()) },
		stream:  func(stream) cel.Bool { return cel.False() },
		neutral: neutralsOf(litOf(k)),
	})
}

// asList makes the key a stream where it is a list.
func (l *lowering) asList(key jval) jval {
	switch {
	case key.form == valForm && key.v.kind() == schema.List && !key.v.never:
		return streamOf(strictList{listOf{v: key.v, hint: l.hint(key.v)}})
	case key.form == multiForm:
		return streamOf(l.multiStream(key))
	}
	return key
}

// A set is the right side of a membership.
type set interface {
	// has is: the value of the type is a member.
	has(x cel.Value, t *schema.Type) cel.Bool
	// hasLiteral is: the literal is a member.
	hasLiteral(v any) cel.Bool
}

// inSet applies an operator to a key. Scalar keys see no difference between Any
// and All.
func (l *lowering) inSet(op string, key jval, s set, value jval) cel.Bool {
	not := strings.HasSuffix(op, "notin")
	negate := func(b cel.Bool) cel.Bool {
		if not {
			return cel.Not(b)
		}
		return b
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return literalMembers(op, v, s)
			}
			return negate(s.hasLiteral(v))
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				one := cel.And(isScalar(x), negate(s.has(x, t)))
				return cel.Or(one, cel.And(isList(x), l.members(op, listOf{v: at(x, &schema.Type{Kind: schema.List, Elem: anyType()})}, s)))
			}
			return negate(s.has(x, t))
		},
		stream:  func(st stream) cel.Bool { return l.members(op, st, s) },
		neutral: neutralsOf(value),
	})
}

// members applies an operator to a list key.
func (l *lowering) members(op string, st stream, s set) cel.Bool {
	in := func(x jval) cel.Bool {
		return l.holds(x, false, pred{
			lit:    func(v any) cel.Bool { return s.hasLiteral(v) },
			value:  func(e cel.Value, t *schema.Type) cel.Bool { return s.has(e, t) },
			stream: func(stream) cel.Bool { panic(l.unsupported("a list of lists as a condition's key")) },
		})
	}
	switch op {
	case "anyin":
		return st.quantify(l, "exists", false, in)
	case "allin":
		return st.quantify(l, "all", false, in)
	case "anynotin":
		return st.quantify(l, "exists", false, func(x jval) cel.Bool { return cel.Not(in(x)) })
	}
	return st.quantify(l, "all", false, func(x jval) cel.Bool { return cel.Not(in(x)) })
}

func literalMembers(op string, keys []any, s set) cel.Bool {
	var each []cel.Bool
	for _, k := range keys {
		in := s.hasLiteral(k)
		if strings.HasSuffix(op, "notin") {
			in = cel.Not(in)
		}
		each = append(each, in)
	}
	if strings.HasPrefix(op, "any") {
		return cel.Or(each...)
	}
	return cel.And(each...)
}

// literalSet is a list of the policy. Its texts may be wildcards; those of the
// request are none (deviation 9). Numbers and booleans compare by their text.
type literalSet []any

func (s literalSet) texts() []string {
	out := make([]string, len(s))
	for i, v := range s {
		out[i] = literalText(v)
	}
	return out
}

func (s literalSet) has(x cel.Value, t *schema.Type) cel.Bool {
	switch kindOf(t) {
	case schema.String:
		return inTexts(x, s.texts())
	case schema.Bool:
		return boolCases(x, anyWild(s.texts(), "true"), anyWild(s.texts(), "false"))
	case schema.Int:
		return intIn(x, s.texts())
	case schema.Number:
		return intIn(x, s.texts())
	case schema.IntOrString:
		return byType(x, typed{"int", intIn(x, s.texts())}, typed{"string", inTexts(x, s.texts())})
	case schema.Any:
		if !anyIsWild(s.texts()) {
			return anyIn(x, s.texts())
		}
		return cel.Or(
			cel.And(isString(x), inTexts(x, s.texts())),
			cel.And(isNumber(x), intIn(x, s.texts())),
			boolAny(x, anyWild(s.texts(), "true"), anyWild(s.texts(), "false")))
	}
	return cel.False()
}

func (s literalSet) hasLiteral(v any) cel.Bool {
	text := literalText(v)
	for _, t := range s.texts() {
		if wildMatch(t, text) || wildMatch(text, t) {
			return cel.True()
		}
	}
	return cel.False()
}

func anyIsWild(texts []string) bool {
	for _, t := range texts {
		if isWild(t) {
			return true
		}
	}
	return false
}

func anyWild(texts []string, s string) bool {
	for _, t := range texts {
		if wildMatch(t, s) {
			return true
		}
	}
	return false
}

// inTexts is: the string is one of the words, or matches one of the wildcards.
func inTexts(x cel.Value, texts []string) cel.Bool {
	var words []string
	var alts []cel.Bool
	for _, t := range texts {
		if isWild(t) {
			alts = append(alts, wild(x, t))
		} else {
			words = append(words, t)
		}
	}
	if len(words) > 0 {
		alts = append([]cel.Bool{oneOf(x, words)}, alts...)
	}
	return cel.Or(alts...)
}

// intIn is: the text of the number is one of the texts.
func intIn(x cel.Value, texts []string) cel.Bool {
	var numbers []cel.Value
	var alts []cel.Bool
	for _, t := range texts {
		switch f, ok := parseNumber(t); {
		case isWild(t):
			alts = append(alts, intText(x, atom{"==", t}))
		case ok && numberText(f) == t && f == float64(int64(f)):
			numbers = append(numbers, cel.Int(int64(f)))
		case ok && numberText(f) == t:
			alts = append(alts, x.Eq(cel.Double(f)))
		}
	}
	if len(numbers) == 1 {
		alts = append(alts, x.Eq(numbers[0]))
	} else if len(numbers) > 1 {
		alts = append(alts, x.In(cel.List(numbers...)))
	}
	return cel.Or(alts...)
}

// anyIn is membership of a value of unknown type in words: as a text, a number or
// a boolean that reads like one of them.
func anyIn(x cel.Value, texts []string) cel.Bool {
	alts := []cel.Bool{}
	if len(texts) > 0 {
		alts = append(alts, oneOf(x, texts))
	}
	return cel.Or(append(alts, intIn(x, texts), boolAny(x, anyWild(texts, "true"), anyWild(texts, "false")))...)
}

// streamSet is a list of the request, whose texts are no wildcards.
type streamSet struct {
	l *lowering
	s stream
}

func (s streamSet) has(x cel.Value, t *schema.Type) cel.Bool {
	if list, ok := s.s.list(s.l, false); ok && kindOf(t) == kindOf(s.s.elem()) && kindOf(t) == schema.String {
		return x.In(list)
	}
	return s.s.quantify(s.l, "exists", false, func(y jval) cel.Bool { return s.l.equalValues(valOf(at(x, t)), y) })
}

func (s streamSet) hasLiteral(v any) cel.Bool {
	return s.s.quantify(s.l, "exists", false, func(y jval) cel.Bool {
		if text, ok := v.(string); ok && isWild(text) {
			return s.l.holds(y, false, pred{
				lit:    func(w any) cel.Bool { return cel.Lit(w != nil && wildMatch(text, literalText(w))) },
				value:  func(e cel.Value, t *schema.Type) cel.Bool { return literalSet{text}.has(e, t) },
				stream: func(stream) cel.Bool { return cel.False() },
			})
		}
		return s.l.equal(y, litOf(v))
	})
}

// valueSet is a list of the policy some of whose items are variables.
type valueSet struct {
	l    *lowering
	list jval
}

func (s valueSet) has(x cel.Value, t *schema.Type) cel.Bool {
	var alts []cel.Bool
	for _, item := range s.list.multi {
		if item.form == litForm {
			alts = append(alts, literalSet{item.lit}.has(x, t))
			continue
		}
		alts = append(alts, s.l.equalValues(valOf(at(x, t)), item))
	}
	return cel.Or(alts...)
}

func (s valueSet) hasLiteral(v any) cel.Bool {
	var alts []cel.Bool
	for _, item := range s.list.multi {
		if item.form == litForm {
			alts = append(alts, literalSet{item.lit}.hasLiteral(v))
			continue
		}
		alts = append(alts, streamSet{l: s.l, s: single{item}}.hasLiteral(v))
	}
	return cel.Or(alts...)
}

// membershipScalar is a value that is no list and no text: invalid for a scalar
// key, and for a list key one element.
func (l *lowering) membershipScalar(op string, key, value jval) cel.Bool {
	one := literalSet{value.lit}
	_, isMap := value.lit.(map[string]any)
	if value.lit == nil || isMap || strings.HasPrefix(op, "all") {
		return l.never(key)
	}
	return l.onlyLists(key, func(s stream) cel.Bool { return l.members(op, s, one) },
		func(keys []any) cel.Bool { return literalMembers(op, keys, one) })
}

// never is false, and an error where the key is one.
func (l *lowering) never(key jval) cel.Bool {
	return l.holds(key, true, pred{
		lit:    func(any) cel.Bool { return cel.False() },
		value:  func(cel.Value, *schema.Type) cel.Bool { return cel.False() },
		stream: func(stream) cel.Bool { return cel.False() },
	})
}

// onlyLists is false for every key but a list.
func (l *lowering) onlyLists(key jval, list func(stream) cel.Bool, literals func([]any) cel.Bool) cel.Bool {
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			if keys, ok := v.([]any); ok {
				return literals(keys)
			}
			return cel.False()
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			if kindOf(t) == schema.Any {
				return cel.And(isList(x), list(listOf{v: at(x, &schema.Type{Kind: schema.List, Elem: anyType()})}))
			}
			return cel.False()
		},
		stream: list,
	})
}

// membershipText is a value that is a text: a wildcard, a range, or a list in
// JSON for a scalar key; for a list key also one element.
func (l *lowering) membershipText(op string, key jval, text string) cel.Bool {
	list, isJSON, valid := jsonStrings(text)
	members := make([]any, len(list))
	for i, s := range list {
		members[i] = s
	}
	scalar := textSet{l: l, text: text, members: members, valid: valid, isList: isJSON}
	not := strings.HasSuffix(op, "notin")
	one := func(in cel.Bool, decided bool) cel.Bool {
		if !decided {
			return cel.False()
		}
		if not {
			return cel.Not(in)
		}
		return in
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return l.listInText(op, concat(singles(v)), scalar)
			}
			in, invalid := scalar.literal(v)
			return one(cel.Lit(in), !invalid)
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				elems := listOf{v: at(x, &schema.Type{Kind: schema.List, Elem: anyType()})}
				return cel.Or(cel.And(isScalar(x), scalar.holds(x, t, not)), cel.And(isList(x), l.listInText(op, elems, scalar)))
			}
			return scalar.holds(x, t, not)
		},
		stream:  func(s stream) cel.Bool { return l.listInText(op, s, scalar) },
		neutral: neutralsOf(litOf(text)),
	})
}

func singles(vs []any) []stream {
	out := make([]stream, len(vs))
	for i, v := range vs {
		out[i] = single{litOf(v)}
	}
	return out
}

// textSet is a text as the right side for a scalar key.
type textSet struct {
	l             *lowering
	text          string
	members       []any
	valid, isList bool // JSON; a JSON list of strings
}

func (s textSet) inRange() bool { return insideRange.MatchString(s.text) }

// holds is the operator of a scalar key: in, or its negation.
func (s textSet) holds(x cel.Value, t *schema.Type, not bool) cel.Bool {
	wildcard := literalSet{s.text}.has(x, t)
	var rest cel.Bool
	invalid := false
	switch {
	case s.inRange():
		rest = s.l.scalarOne(at(x, t), &policy.Node{Kind: policy.String, Str: s.text}, false)
	case s.isList:
		rest = exactly(s.members).has(x, t)
	case s.valid:
		invalid = true
	default:
		rest = literalSet{s.text}.has(x, t)
	}
	if invalid { // true where the wildcard matches, and false otherwise, negated too
		if not {
			return cel.False()
		}
		return wildcard
	}
	in := cel.Or(wildcard, rest)
	if not {
		return cel.Not(in)
	}
	return in
}

func (s textSet) literal(v any) (in, invalid bool) {
	text := literalText(v)
	switch {
	case wildMatch(s.text, text):
		return true, false
	case s.inRange():
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			v = int64(f)
		}
		return patternHolds(v, s.text), false
	case s.isList:
		for _, m := range s.members {
			if m == text {
				return true, false
			}
		}
		return false, false
	}
	return false, s.valid
}

// exactly is a set of words that are no wildcards.
type exactly []any

func (s exactly) has(x cel.Value, t *schema.Type) cel.Bool {
	var words []string
	for _, v := range s {
		words = append(words, literalText(v))
	}
	switch kindOf(t) {
	case schema.String:
		if len(words) == 0 {
			return cel.False()
		}
		return oneOf(x, words)
	case schema.Any:
		return anyIn(x, words)
	}
	return literalSet(s).has(x, t)
}

// listInText is a list key against a text.
func (l *lowering) listInText(op string, s stream, t textSet) cel.Bool {
	switch {
	case t.inRange():
		p := &policy.Node{Kind: policy.String, Str: t.text}
		in := func(x jval) cel.Bool {
			return l.holds(x, false, pred{
				lit:    func(v any) cel.Bool { return cel.Lit(literalSatisfies(v, p)) },
				value:  func(e cel.Value, typ *schema.Type) cel.Bool { return l.scalarOne(at(e, typ), p, false) },
				stream: func(stream) cel.Bool { return cel.False() },
			})
		}
		if strings.Count(t.text, "-") > 1 && op == "anynotin" {
			panic(l.unsupported("AnyNotIn with a range that has a sign"))
		}
		return l.quantified(op, s, in)
	case t.isList:
		return l.members(op, s, literalSet(t.members))
	case t.valid:
		// the text of a JSON value that is no list of strings is in no list but the
		// one that holds just this text
		only := l.onlyElement(s, t.text)
		if strings.HasSuffix(op, "notin") {
			return cel.False()
		}
		return only
	}
	return l.members(op, s, literalSet{t.text})
}

// onlyElement is: the list has one element, this text.
func (l *lowering) onlyElement(s stream, text string) cel.Bool {
	return cel.And(s.count(l, false).Eq(cel.Int(1)),
		s.quantify(l, "all", false, func(x jval) cel.Bool {
			return l.holds(x, false, pred{
				lit:    func(v any) cel.Bool { return cel.Lit(literalText(v) == text) },
				value:  func(e cel.Value, t *schema.Type) cel.Bool { return exactly{text}.has(e, t) },
				stream: func(stream) cel.Bool { return cel.False() },
			})
		}))
}

func (l *lowering) quantified(op string, s stream, in func(jval) cel.Bool) cel.Bool {
	not := func(x jval) cel.Bool { return cel.Not(in(x)) }
	switch op {
	case "anyin":
		return s.quantify(l, "exists", false, in)
	case "allin":
		return s.quantify(l, "all", false, in)
	case "anynotin":
		return s.quantify(l, "exists", false, not)
	}
	return s.quantify(l, "all", false, not)
}

// oldMembership is the deprecated In and NotIn.
func (l *lowering) oldMembership(op string, key, value jval) cel.Bool {
	key = key.over(l.asList)
	not := op == "notin"
	if value.form != litForm {
		panic(l.refuse(diag.NoOperator, "the deprecated operator %s with a variable as its value has no native form", op))
	}
	var members []any
	wildcards, valid := true, true
	text, isText := value.lit.(string)
	switch v := value.lit.(type) {
	case []any:
		members = v
	case string:
		words, isJSON, _ := jsonStrings(v)
		for _, s := range words {
			members = append(members, s)
		}
		valid, wildcards = isJSON, false
	default:
		return l.neverOfTexts(key)
	}
	negate := func(b cel.Bool) cel.Bool {
		if not {
			return cel.Not(b)
		}
		return b
	}
	scalar := func(has func(set) cel.Bool) cel.Bool {
		if !isText {
			return negate(has(literalSet(members)))
		}
		if !valid { // only the wildcard decides
			if not {
				return cel.False()
			}
			return has(literalSet{text})
		}
		return negate(cel.Or(has(literalSet{text}), has(exactlySet(members, wildcards))))
	}
	ofTexts := func(s stream) cel.Bool {
		if !allStrings(members) {
			return cel.False()
		}
		inMembers := cel.False()
		if !isText || valid {
			inMembers = negate(s.quantify(l, "all", false, func(x jval) cel.Bool { return l.exactMember(x, members) }))
		}
		if isText { // the single key that is the value is in it, and also not in it
			return cel.Or(l.onlyElement(s, text), inMembers)
		}
		return inMembers
	}
	ofList := func(s stream) cel.Bool { return l.textsOnly(s, ofTexts(s)) }
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return ofList(concat(singles(v)))
			}
			return scalar(func(s set) cel.Bool { return s.hasLiteral(v) })
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			one := func() cel.Bool { return scalar(func(s set) cel.Bool { return s.has(x, t) }) }
			switch kindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				return cel.Or(cel.And(isScalar(x), one()),
					cel.And(isList(x), ofList(listOf{v: at(x, &schema.Type{Kind: schema.List, Elem: anyType()})})))
			}
			return one()
		},
		stream:  ofList,
		neutral: neutralsOf(value),
	})
}

// neverOfTexts is false, and an error where the key is one or is a list of other
// things than texts.
func (l *lowering) neverOfTexts(key jval) cel.Bool {
	list := func(s stream) cel.Bool { return l.textsOnly(s, cel.False()) }
	return l.onlyLists(key, list, func(keys []any) cel.Bool { return list(concat(singles(keys))) })
}

// exactlySet is members that are wildcards or not.
func exactlySet(members []any, wildcards bool) set {
	if wildcards {
		return literalSet(members)
	}
	return exactLiterals{exactly(members)}
}

type exactLiterals struct{ exactly }

func (s exactLiterals) hasLiteral(v any) cel.Bool {
	for _, m := range s.exactly {
		if literalText(m) == literalText(v) {
			return cel.True()
		}
	}
	return cel.False()
}

// textsOnly is b, or an error where an element of a list key is no string, which
// is where Kyverno crashes (deviation 4).
func (l *lowering) textsOnly(s stream, b cel.Bool) cel.Bool {
	texts := s.quantify(l, "all", false, func(x jval) cel.Bool {
		return l.holds(x, false, pred{
			lit: func(v any) cel.Bool { _, ok := v.(string); return cel.Lit(ok) },
			value: func(e cel.Value, t *schema.Type) cel.Bool {
				switch kindOf(t) {
				case schema.String:
					return cel.True()
				case schema.Any, schema.IntOrString:
					return isString(e)
				}
				return cel.False()
			},
			stream: func(stream) cel.Bool { return cel.False() },
		})
	})
	if texts.IsTrue() {
		return b
	}
	return cel.CondBool(texts, b, l.error(typeError("text")))
}

// exactMember is: a list key's element, which is a string, is a member.
func (l *lowering) exactMember(x jval, members []any) cel.Bool {
	return l.holds(x, false, pred{
		lit: func(v any) cel.Bool { return exactLiterals{exactly(members)}.hasLiteral(v) },
		value: func(e cel.Value, t *schema.Type) cel.Bool {
			if kindOf(t) == schema.Any {
				return cel.And(isString(e), exactly(members).has(e, stringType()))
			}
			return exactly(members).has(e, t)
		},
		stream: func(stream) cel.Bool { return cel.False() },
	})
}
