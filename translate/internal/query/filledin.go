package query

import (
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/translate/internal/read"
)

// filled asks for the variables inside an expression. Kyverno fills those in first, as
// text: also where the expression turns out not to need them.
func filled(l *read.Lowering, e *jmespath.Expr) {
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		for _, t := range []*jmespath.Template{e.Text, e.Dynamic} {
			if t != nil {
				filledTemplate(l, t)
			}
		}
		return e.Text == nil && e.Dynamic == nil // which have seen to what is inside them
	})
}

func filledTemplate(l *read.Lowering, t *jmespath.Template) {
	for _, part := range t.Parts {
		if part.Var != nil && !l.Ask(Variable(l, part.Var)) {
			panic(l.Unsupported("a list or a map inside an expression"))
		}
	}
}
