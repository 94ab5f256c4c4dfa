package translate

import (
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
)

// message lowers the rule's message. A variable in it that has no native form
// stays as it is written: the verdict does not depend on it.
func (l *lowering) message(t policy.Text) (m native.Message) {
	m.Text = strings.Join(strings.Fields(t.Value), " ")
	if m.Text == "" {
		m.Text = "rule " + l.rule.Name + " is violated"
		return m
	}
	notes, first, pos := l.notes, l.params == nil, l.pos
	l.notes = nil
	stop := l.attempt(func() {
		j := l.template(l.parseTemplate(m.Text, t.Pos))
		if s, ok := j.lit.(string); ok && j.form == litForm {
			m.Text = s
			return
		}
		v := l.text(l.asText(j).over(func(j operand) operand {
			if j.form == jsonForm { // the text as it is written tells more than an error
				return litOf(m.Text)
			}
			return j
		}))
		if first && l.params != nil {
			panic(l.unsupported("params that only the message reads"))
		}
		m.Expr = &v
	})
	l.notes = notes
	l.setPos(pos)
	switch stop.(type) {
	case nil:
	case refusal:
		l.setPos(t.Pos)
		l.note(diag.MessageVariable, "the variables of the message have no native form; it is shown as written")
	default:
		panic(stop)
	}
	return m
}
