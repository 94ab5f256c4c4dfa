package rule

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// message lowers the rule's message. A variable in it that has no native form
// stays as it is written: the verdict does not depend on it.
func message(l *read.Lowering, t policy.Text) (m native.Message) {
	pos := l.Pos
	stop := l.Attempt(func() { m = messageOf(l, t) })
	l.SetPos(pos)
	switch stop.(type) {
	case nil:
	case read.Refusal:
		m = native.Message{Text: messageText(l, t)}
		l.SetPos(t.Pos)
		l.Note(diag.MessageVariable, "the variables of the message have no native form; it is shown as written")
	default:
		panic(stop)
	}
	return m
}

// messageText is the message as it is written, or one for a rule that has none.
func messageText(l *read.Lowering, t policy.Text) string {
	if text := strings.Join(strings.Fields(t.Value), " "); text != "" {
		return text
	}
	return "rule " + l.Rule.Name + " is violated"
}

// messageOf is message, with a refusal where a variable has no native form. What else is
// to be told of the message is of no interest.
func messageOf(l *read.Lowering, t policy.Text) native.Message {
	m, first := native.Message{Text: messageText(l, t)}, l.Params == nil
	if t.Value == "" {
		return m
	}
	l = l.Inside()
	l.Notes = nil
	template := query.ParseTemplate(m.Text, t.Pos)
	j := query.TemplateOf(l, template, func(v *jmespath.Variable) read.Operand {
		return read.InEach(l, query.Variable(l, v), func(j read.Operand) read.Operand { return shown(l, j) })
	})
	if s, ok := j.Lit.(string); ok && j.Form == read.LitForm {
		m.Text = s
		return m
	}
	v := query.Text(l, j)
	if first && l.Params != nil {
		panic(l.Unsupported("params that only the message reads"))
	}
	if isVariablesOnly(template) { // a sum with a text is one, to the API server's compiler too
		v = cel.Func(cel.FuncString, read.Dyn(v))
	}
	m.Expr = &v
	return m
}

func isVariablesOnly(t *jmespath.Template) bool {
	return !slices.ContainsFunc(t.Parts, func(p jmespath.Part) bool { return p.Var == nil })
}

// shown is a value in a message. Of one of unknown type that is no text, number or boolean
// CEL makes no text; the API server shows the message as it is written then.
func shown(l *read.Lowering, j read.Operand) read.Operand {
	if j.Form != read.PlaceForm || !j.V.Dynamic() || j.V.Never || read.IsConfigured(j) {
		return j
	}
	v, ok := read.Expr(l, j)
	if !ok {
		return j
	}
	return read.StringOf(cel.Func(cel.FuncString, read.Dyn(v)))
}
