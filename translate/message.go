package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
)

// message lowers the rule's message. A variable in it that has no native form
// stays as it is written: the verdict does not depend on it.
func (l *lowering) message(t policy.Text) (m native.Message) {
	pos := l.pos
	stop := l.attempt(func() { m = l.messageOf(t) })
	l.setPos(pos)
	switch stop.(type) {
	case nil:
	case refusal:
		m = native.Message{Text: l.messageText(t)}
		l.setPos(t.Pos)
		l.note(diag.MessageVariable, "the variables of the message have no native form; it is shown as written")
	default:
		panic(stop)
	}
	return m
}

// messageText is the message as it is written, or one for a rule that has none.
func (l *lowering) messageText(t policy.Text) string {
	if text := strings.Join(strings.Fields(t.Value), " "); text != "" {
		return text
	}
	return "rule " + l.rule.Name + " is violated"
}

// messageOf is message, with a refusal where a variable has no native form. What else is
// to be told of the message is of no interest.
func (l *lowering) messageOf(t policy.Text) native.Message {
	m, first, notes := native.Message{Text: l.messageText(t)}, l.params == nil, l.notes
	if t.Value == "" {
		return m
	}
	l.notes = nil
	defer func() { l.notes = notes }()
	j := l.templateOf(l.parseTemplate(m.Text, t.Pos), func(v *jmespath.Variable) operand { return l.inEach(l.variable(v), l.shown) })
	if s, ok := j.lit.(string); ok && j.form == litForm {
		m.Text = s
		return m
	}
	v := l.text(j)
	if first && l.params != nil {
		panic(l.unsupported("params that only the message reads"))
	}
	m.Expr = &v
	return m
}

// shown is a value in a message. Of one of unknown type that is no text, number or boolean
// CEL makes no text; the API server shows the message as it is written then.
func (l *lowering) shown(j operand) operand {
	if j.form != placeForm || !j.v.dynamic() || j.v.never || isConfigured(j) {
		return j
	}
	v, ok := l.expr(j)
	if !ok {
		return j
	}
	return stringOf(cel.Func(cel.FuncString, dyn(v)))
}
