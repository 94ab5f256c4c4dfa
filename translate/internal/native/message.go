package native

import "github.com/kvap/kvap/cel"

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
