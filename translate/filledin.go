package translate

import (
	"github.com/kvap/kvap/jmespath"
)

// filled asks for the variables inside an expression. Kyverno fills those in first, as
// text: also where the expression turns out not to need them.
func (l *lowering) filled(e *jmespath.Expr) {
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		for _, t := range []*jmespath.Template{e.Text, e.Dynamic} {
			if t != nil {
				l.filledTemplate(t)
			}
		}
		return e.Text == nil && e.Dynamic == nil // which have seen to what is inside them
	})
}

func (l *lowering) filledTemplate(t *jmespath.Template) {
	for _, part := range t.Parts {
		if part.Var != nil && !l.ask(l.variable(part.Var)) {
			panic(l.unsupported("a list or a map inside an expression"))
		}
	}
}
