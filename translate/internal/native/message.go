package native

import "github.com/kvap/kvap/cel"

// A Message is what a violation says: a text, and an expression where the text
// holds variables.
type Message struct {
	Text string
	Expr *cel.Value
}

// Key is everything that the message says.
func (m Message) Key() string {
	if m.Expr == nil {
		return m.Text
	}
	return m.Text + "\x00" + m.Expr.String()
}
