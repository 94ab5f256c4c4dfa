package translate

import (
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// The forms of JSON that are told apart at run time: a list of strings without
// escapes, which can be taken apart; what is in no list of strings; and the rest,
// which is an error here. JSON has no control characters in strings.
const (
	jsonWord     = `"[^"\\\x00-\x1f]*"`
	jsonWords    = `^\s*\[\s*(` + jsonWord + `\s*(,\s*` + jsonWord + `\s*)*)?\]\s*$`
	jsonScalar   = `^\s*(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null|` + jsonWord + `|\{\s*\})\s*$`
	undecidable  = `^\s*[\[{"]|^[-|+]?\d+(\.\d+)?[A-Za-z]*-[-|+]?\d+(\.\d+)?[A-Za-z]*$`
	mayBeJSON    = `^\s*([\[{"\-0-9]|true|false|null)`
	unknownWords = "neither_text_nor_list_of_strings"
	noList       = "no_list_of_strings"
)

// A configText is a text of the cluster's configuration as the right side of an
// operator: a pattern, or the JSON of a list of strings. What it is, is only known
// at run time.
type configText struct {
	l       *lowering
	text    cel.Value
	name    string   // for variables
	notNull cel.Bool // the text is there; nothing holds of null
}

func (l *lowering) configText(value operand) configText {
	l.note(diag.RuntimeText, "the text of the ConfigMap is known only at run time; a range, or JSON that is no list of words, is an error")
	l.reads(value.v, true)
	l.errs = l.errs || l.found == nil // the text may be none of the forms that are known
	t := configText{l, value.v.expr, variableName(value.v.expr.LastField(), "configured"), value.v.shaped()}
	t.text = t.l.once(t.name+"Text", t.text)
	return t
}

// once is v as a composed variable if it is more than a plain field and depends on no comprehension
// around it.
func (l *lowering) once(name string, v cel.Value) cel.Value {
	if v.Plain() || l.binders.Binds(v) {
		return v
	}
	return l.let(name, v)
}

// variableName is a field's name as a variable; otherwise where that is none.
func variableName(field, otherwise string) string {
	var b strings.Builder
	upper := false
	for _, r := range field {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && (b.Len() == 0 || !unicode.IsDigit(r)):
			upper = b.Len() > 0
			continue
		case upper:
			r = unicode.ToUpper(r)
		}
		upper = false
		b.WriteRune(r)
	}
	if b.Len() == 0 || cel.Taken(b.String()) {
		return otherwise
	}
	return b.String()
}

// shared is what is made of the text as a composed variable, or as it is inside a
// comprehension that the text depends on.
func (t configText) shared(suffix string, v func() cel.Value) cel.Value {
	if t.l.binders.Binds(t.text) {
		return v()
	}
	defer t.l.atTop()()
	return t.l.let(t.name+suffix, v())
}

// words are the elements of the list that the text is the JSON of, or the text
// alone; none where it is other JSON.
func (t configText) words() cel.Value {
	return t.shared("List", func() cel.Value {
		return cel.Cond(t.text.Matches(jsonWords), t.taken(),
			cel.Cond(t.text.Matches(jsonScalar), cel.List(),
				cel.Cond(t.text.Matches(undecidable), dyn(cel.Map()).Field(unknownWords), cel.List(t.text))))
	})
}

// taken are the words, out of their list.
func (t configText) taken() cel.Value {
	return t.l.binders.Map(t.text.Call(cel.FuncFindAll, cel.String(jsonWord)), "word", func(w cel.Value) cel.Value {
		return w.Call(cel.FuncSubstring, cel.Int(1), w.Size().Binary(cel.Minus, cel.Int(1)))
	})
}

// patterns are the words as regular expressions.
func (t configText) patterns() cel.Value {
	return t.shared("Patterns", func() cel.Value { return t.l.binders.Map(t.words(), "word", patternOf) })
}

// pattern is the text as a regular expression.
func (t configText) pattern() cel.Value {
	return t.shared("Pattern", func() cel.Value { return patternOf(t.text) })
}

// patternOf is a wildcard as a regular expression: all of it is quoted, but for
// * and ?.
func patternOf(wildcard cel.Value) cel.Value {
	replaced := func(v cel.Value, from, to string) cel.Value {
		return v.Call(cel.FuncReplace, cel.String(from), cel.String(to))
	}
	inner := replaced(replaced(replaced(wildcard, `\`, `\E\\\Q`), "*", `\E.*\Q`), "?", `\E.\Q`)
	return cel.String(`(?s)^\Q`).Plus(inner).Plus(cel.String(`\E$`))
}

func matchesPattern(x, re cel.Value) cel.Bool { return x.Call(cel.FuncMatches, re).AsBool() }

// inConfigured is a membership in a text of the cluster's configuration.
func (l *lowering) inConfigured(op memberOperator, key, value operand) cel.Bool {
	if isConfigured(key) || key.form == sequenceForm && elemConfigured(key.s) {
		panic(l.unsupported("a membership whose sides are both outside the request"))
	}
	t := l.configText(value)
	not := op.not
	one := func(x cel.Value) cel.Bool {
		x = l.once(t.name+"Key", x)
		in := cel.Or(matchesPattern(x, t.pattern()), x.In(t.words()))
		if not { // of other JSON nothing is in it, and nothing is not
			return cel.CondBool(in, cel.False(), cel.Not(t.text.Matches(jsonScalar)))
		}
		return in
	}
	return cel.And(t.notNull, l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return t.members(op, concat(singles(v)))
			}
			return one(cel.String(scalar.Text(v)))
		},
		value: func(x cel.Value, typ *schema.Type) cel.Bool {
			switch kindOf(typ) {
			case schema.String:
				return one(x)
			case schema.Int, schema.Bool, schema.IntOrString:
				return one(cel.Func(cel.FuncString, x))
			case schema.Object, schema.Map:
				return cel.False()
			}
			panic(l.unsupported("the membership of a value whose type is not known in a text that is only known at run time"))
		},
		sequence: func(s sequence) cel.Bool { return t.members(op, s) },
	}))
}

// members applies an operator to a list key.
func (t configText) members(op memberOperator, s sequence) cel.Bool {
	only := cel.And(s.count(t.l, false).Eq(cel.Int(1)), s.quantify(t.l, cel.ForAll, false, func(x operand) cel.Bool {
		return t.each(x, func(x cel.Value) cel.Bool { return x.Eq(t.text) })
	}))
	in := func(x operand) cel.Bool {
		return t.each(x, func(x cel.Value) cel.Bool {
			is := t.l.binders.Exists(t.patterns(), "pattern", func(p cel.Value) cel.Bool { return matchesPattern(x, p) })
			if !t.l.mutual(op) {
				return is
			}
			return cel.Or(is, t.l.binders.Exists(t.words(), "word", func(w cel.Value) cel.Bool { return matchesPattern(w, patternOf(x)) }))
		})
	}
	valid := cel.Not(t.text.Matches(jsonScalar))
	members := op.ofList(t.l, s, in)
	switch {
	case op.not:
		return cel.CondBool(only, cel.False(), cel.And(valid, members))
	case op.over == cel.ForAll:
		return cel.Or(only, cel.And(valid, members))
	}
	return cel.Or(only, members)
}

// A configSet is a list of texts of the cluster's configuration.
type configSet struct {
	l  *lowering
	s  sequence
	op memberOperator
}

func (s configSet) has(x cel.Value, t *schema.Type) cel.Bool {
	switch kindOf(t) {
	case schema.String:
	case schema.Int, schema.Bool, schema.IntOrString:
		x = cel.Func(cel.FuncString, x)
	default:
		panic(s.l.unsupported("the membership of a value whose type is not known in a list that is only known at run time"))
	}
	return s.s.quantify(s.l, cel.ForSome, true, func(p operand) cel.Bool {
		text, _ := s.l.expr(p)
		if s.l.mutual(s.op) && mayBeText(t) {
			return cel.Or(matchesPattern(x, patternOf(text)), matchesPattern(text, patternOf(x)))
		}
		return matchesPattern(x, patternOf(text))
	})
}

func (s configSet) hasLiteral(v any) cel.Bool {
	text := scalar.Text(v)
	if scalar.IsWild(text) {
		panic(s.l.unsupported("a wildcard against texts that may be wildcards"))
	}
	return s.has(cel.String(text), stringType())
}

// parseJSON is parse_json of a text of the cluster's configuration, which must be
// a list of strings.
func (l *lowering) parseJSON(text operand) operand {
	if !isConfigured(text) {
		panic(l.refuse(diag.NoFunction, "the function parse_json has no native form"))
	}
	t := l.configText(text)
	if l.found != nil { // what is certainly no JSON is an error that can be told beforehand
		*l.found = append(*l.found, t.text.Matches(mayBeJSON))
	}
	list := t.shared("Words", func() cel.Value {
		return cel.Cond(t.text.Matches(jsonWords), t.taken(), dyn(cel.Map()).Field(noList))
	})
	return operandAt(placeOf(list, &schema.Type{Kind: schema.List, Elem: stringType()}).from(fromConfiguration))
}

// each is p of the text of a list key's element.
func (t configText) each(x operand, p func(cel.Value) cel.Bool) cel.Bool {
	return t.l.holds(x, false, pred{
		lit: func(v any) cel.Bool { return cel.And(cel.Lit(v != nil), p(cel.String(scalar.Text(v)))) },
		value: func(x cel.Value, typ *schema.Type) cel.Bool {
			switch kindOf(typ) {
			case schema.String:
				return p(x)
			case schema.Int, schema.Bool, schema.IntOrString:
				return p(cel.Func(cel.FuncString, x))
			}
			panic(t.l.unsupported("the membership of a list of values whose type is not known in a text that is only known at run time"))
		},
		sequence: func(sequence) cel.Bool { panic(t.l.unsupported("a list of lists as a condition's key")) },
	})
}

// equalsConfigured is Equals of a key that is a text: durations compare as such,
// then a key that is a quantity compares as one or not at all, then the value is
// a wildcard.
func (l *lowering) equalsConfigured(key, value operand) cel.Bool {
	t := l.configText(value)
	compared := func(x cel.Value, timed, counted cel.Bool) cel.Bool {
		durations := cel.And(timed, isDuration(t.text), t.text.Ne(cel.String("0")))
		quantities := cel.And(isQuantity(t.text), cel.Func(cel.FuncQuantity, x).Call(cel.FuncCompareTo, cel.Func(cel.FuncQuantity, t.text)).Eq(cel.Int(0)))
		return cel.CondBool(durations, cel.Func(cel.FuncDuration, x).Eq(cel.Func(cel.FuncDuration, t.text)),
			cel.CondBool(counted, quantities, matchesPattern(x, t.pattern())))
	}
	is := func(x cel.Value) cel.Bool {
		x = l.once(t.name+"Key", x)
		return compared(x, cel.And(isDuration(x), x.Ne(cel.String("0"))), isQuantity(x))
	}
	// Of a literal it is known what it reads as; and the API server refuses
	// duration() of one that is none, even where it is never evaluated.
	isLiteral := func(s string) cel.Bool {
		_, timed := scalar.Duration(s)
		_, counted := scalar.Quantity(s)
		return compared(cel.String(s), cel.Lit(timed && s != "0"), cel.Lit(counted))
	}
	return cel.And(t.notNull, l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case string:
				return isLiteral(v)
			case float64:
				panic(l.unsupported("the comparison of a number with a text that is only known at run time"))
			}
			return cel.False()
		},
		value: func(x cel.Value, typ *schema.Type) cel.Bool {
			switch kindOf(typ) {
			case schema.String:
				return is(x)
			case schema.Bool, schema.List, schema.Map, schema.Object:
				return cel.False()
			}
			panic(l.unsupported("the comparison of a value that is no text with one that is only known at run time"))
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	}))
}
