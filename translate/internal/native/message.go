package native

import "github.com/kvap/kvap/cel"

// A Message is what a violation says: a text, and an expression where the text
// holds variables.
type Message struct {
	Text string
	Expr *cel.Value
}

// Key is what the message says: of one with an expression, the text is only said where that
// is an error.
func (m Message) Key() string {
	if m.Expr == nil {
		return m.Text
	}
	return "\x00" + m.Expr.String()
}
