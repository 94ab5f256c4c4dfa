package native

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/scalar"
	"github.com/kvap/kvap/vap"
)

// Mentions tells that an expression reads an identifier.
func Mentions(v cel.Value, name string) bool { return v.Count(name) > 0 }

// OneOfTexts is: the string is one of the words, or matches one of the wildcards.
func OneOfTexts(x cel.Value, texts []string) cel.Bool {
	var words []string
	var alts []cel.Bool
	for _, t := range texts {
		if scalar.IsWild(t) {
			alts = append(alts, Matches(x, t))
		} else {
			words = append(words, t)
		}
	}
	if len(words) > 0 {
		alts = append([]cel.Bool{OneOfWords(x, words)}, alts...)
	}
	return cel.Or(alts...)
}

// OneOfWords is: the string is one of the words.
func OneOfWords(v cel.Value, words []string) cel.Bool {
	if len(words) == 1 {
		return v.Eq(cel.String(words[0]))
	}
	return v.In(cel.Strings(words...))
}

// Matches is: text v matches pattern p, in the shortest form that says so. * is any
// run of characters, also an empty one, and ? exactly one.
func Matches(v cel.Value, p string) cel.Bool {
	if !scalar.IsWild(p) {
		return v.Eq(cel.String(p))
	}
	p = scalar.Collapse(p)
	inner := strings.Trim(p, "*")
	switch {
	case p == "*":
		return cel.True()
	case p == "?*" || p == "*?":
		return v.Ne(cel.String(""))
	case scalar.IsWild(inner):
		return v.Matches(scalar.WildRegexp(p))
	case p == "*"+inner+"*":
		return v.Contains(cel.String(inner))
	case p == inner+"*":
		return v.StartsWith(cel.String(inner))
	default: // "*" + inner
		return v.EndsWith(cel.String(inner))
	}
}

// VariableNamed is the value of a composed variable.
func VariableNamed(name string) cel.Value { return cel.Ident("variables").Field(name) }

// FreshName is name, with a number where a variable has it.
func FreshName(name string, variables []vap.Variable) string {
	return NameByRule(name, "", variables)
}

// NameByRule is name, or with the name of its rule in front where another variable has it.
func NameByRule(name, rule string, variables []vap.Variable) string {
	return vap.FreshName(name, rule, func(name string) bool {
		return slices.ContainsFunc(variables, func(v vap.Variable) bool { return v.Name == name })
	})
}

// A Params is the params object that a unit reads. An empty namespace is that of
// the object under review.
type Params struct {
	Kind, APIVersion, Name, Namespace string
}

// Key is everything that the params are.
func (p *Params) Key() string {
	if p == nil {
		return ""
	}
	return p.APIVersion + "/" + p.Kind + "/" + p.Namespace + "/" + p.Name
}

// AddTo gives a draft the kind of its params.
func (p *Params) AddTo(d *vap.Draft) {
	if p != nil {
		d.ParamKind = &vap.ParamKind{APIVersion: p.APIVersion, Kind: p.Kind}
	}
}

// A Message is what a violation says: a text, and an expression where the text
// holds variables.
type Message struct {
	Text string
	Expr *cel.Value
}

// Naming is the message with names behind it: privileged containers (a, b).
func (m Message) Naming(names cel.Value) Message {
	text := cel.String(m.Text + " (")
	if m.Expr != nil {
		text = m.Expr.Plus(cel.String(" ("))
	}
	expr := text.Plus(names.Call(cel.FuncJoin, cel.String(", "))).Plus(cel.String(")"))
	return Message{m.Text, &expr}
}

// Key is what the message says: of one with an expression, the text is only said where that
// is an error.
func (m Message) Key() string {
	if m.Expr == nil {
		return m.Text
	}
	return "\x00" + m.Expr.String()
}
