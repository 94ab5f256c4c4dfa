package compare

import (
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
)

// A list of strings without escapes can be taken apart at run time; any other list is an
// error here. JSON has no control characters in strings.
const (
	jsonWord     = `"[^"\\\x00-\x1f]*"`
	jsonWords    = `^\s*\[\s*(` + jsonWord + `\s*(,\s*` + jsonWord + `\s*)*)?\]\s*$`
	mayBeList    = `^\s*\[`
	mayBeJSON    = `^\s*([\[{"\-0-9]|true|false|null)`
	unknownWords = "neither_text_nor_list_of_strings"
	noList       = "no_list_of_strings"
)

// A configTextOf is a text of the cluster's configuration as the right side of an operator
// of membership: the JSON of a list of strings, or the one element of a list. What it is, is
// only known at run time.
type configText struct {
	l       *read.Lowering
	text    cel.Value
	name    string   // for variables
	notNull cel.Bool // the text is there; nothing holds of null
}

func configTextOf(l *read.Lowering, value read.Operand) configText {
	if first, last := value.V.Expr.TextEnds(); first+last == "" && value.V.Expr.LastField() == "" {
		panic(l.Unsupported("a list in a text that is put together at run time"))
	}
	l.Note(diag.RuntimeText, "the text of the ConfigMap is known only at run time; a list with escapes, or of other things than texts, is an error")
	return namedText(l, value)
}

// MayBeList tells of a value of a membership that is a text of the configuration, and may be
// none of the forms that are known: that is an error of CEL's own.
func MayBeList(value read.Operand) bool {
	return value.Some(func(j read.Operand) bool { return read.IsConfigured(j) && !isOneWord(j) })
}

// isOneWord tells that a text of the configuration is no list, for what the policy writes
// around it: "{{ cm.data.registry }}/*".
func isOneWord(value read.Operand) bool {
	if !read.IsConfigured(value) {
		return false
	}
	first, last := value.V.Expr.TextEnds()
	first, last = strings.TrimSpace(first), strings.TrimSpace(last)
	return first != "" && first[0] != '[' || last != "" && last[len(last)-1] != ']'
}

// namedText is a text of the configuration that may stand in a composed variable.
func namedText(l *read.Lowering, value read.Operand) configText {
	t := configText{l, value.V.Expr, VariableName(value.V.Expr.LastField(), "configured"), value.V.Shaped()}
	t.text = Once(t.l, t.name+"Text", t.text)
	return t
}

// Once is v as a composed variable if it is more than a plain field and depends on no comprehension
// around it.
func Once(l *read.Lowering, name string, v cel.Value) cel.Value {
	if v.Plain() || l.Binders.Binds(v) {
		return v
	}
	return read.Let(l, name, v)
}

// VariableName is a field's name as a variable; otherwise where that is none.
func VariableName(field, otherwise string) string {
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
func (t configText) shared(suffix string, v func(configText) cel.Value) cel.Value {
	if t.l.Binders.Binds(t.text) {
		return v(t)
	}
	t.l = t.l.AtTop()
	return read.Let(t.l, t.name+suffix, v(t))
}

// words are the elements of the list that the text is the JSON of, or the text alone.
func (t configText) words() cel.Value {
	return t.shared("List", func(t configText) cel.Value {
		return cel.Cond(t.text.Matches(jsonWords), t.taken(),
			cel.Cond(t.text.Matches(mayBeList), partial.Fault(unknownWords), cel.List(t.text)))
	})
}

// patterns are the words as regular expressions.
func (t configText) patterns() cel.Value {
	return t.shared("Patterns", func(t configText) cel.Value { return t.l.Binders.Map(t.words(), "word", patternOf) })
}

// pattern is the text as a regular expression.
func (t configText) pattern() cel.Value {
	return t.shared("Pattern", func(t configText) cel.Value { return patternOf(t.text) })
}

// isPattern tells of a text of the configuration, or of what stands for one.
func isPattern(j read.Operand) bool {
	return read.IsConfigured(j) || j.Form == read.PlaceForm && j.V.Origin == read.FromPatterns
}

// matchesPattern is: x is of the form of a text of the configuration.
func matchesPattern(x cel.Value, text read.Operand) cel.Bool {
	re := text.V.Expr
	if text.V.Origin != read.FromPatterns {
		re = patternOf(re)
	}
	return x.MatchesValue(re)
}

// Wildcard is: a text is as a wildcard says that is known at run time.
func Wildcard(x, wildcard cel.Value) cel.Bool { return x.MatchesValue(patternOf(wildcard)) }

// patternOf is a wildcard as a regular expression: all of it is quoted, but for
// * and ?.
func patternOf(wildcard cel.Value) cel.Value {
	replaced := func(v cel.Value, from, to string) cel.Value {
		return v.Call(cel.FuncReplace, cel.String(from), cel.String(to))
	}
	inner := replaced(replaced(replaced(wildcard, `\`, `\E\\\Q`), "*", `\E.*\Q`), "?", `\E.\Q`)
	return cel.String(`(?s)^\Q`).Plus(inner).Plus(cel.String(`\E$`))
}

// taken are the words, out of their list.
func (t configText) taken() cel.Value {
	return t.l.Binders.Map(t.text.Call(cel.FuncFindAll, cel.String(jsonWord)), "word", func(w cel.Value) cel.Value {
		return w.Call(cel.FuncSubstring, cel.Int(1), w.Size().Binary(cel.Minus, cel.Int(1)))
	})
}

// ParseJSON is parse_json of a text of the cluster's configuration, which must be
// a list of strings.
func ParseJSON(l *read.Lowering, text read.Operand) read.Operand {
	if !read.IsConfigured(text) {
		panic(l.Refuse(diag.NoFunction, "the function parse_json has no native form"))
	}
	t := configTextOf(l, text)
	d, _ := read.DemandsOf(l, text)
	d = d.And(read.Demand(noList, text.V.Found()), read.Demand(noList, t.text.Matches(mayBeJSON))) // of what is certainly no JSON it can be told beforehand
	d.Native = true
	list := t.shared("Words", func(t configText) cel.Value {
		return cel.Cond(t.text.Matches(jsonWords), t.taken(), partial.Fault(noList))
	})
	return read.OperandAt(read.PlaceOf(list, &schema.Type{Kind: schema.List, Elem: read.StringType()}).From(read.FromConfiguration)).Demanding(d)
}
