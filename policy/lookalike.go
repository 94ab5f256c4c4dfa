package policy

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// In JMESPath, literals of JSON stand in backticks. Without them, [] flattens the
// current node, and false is a field of that name:
//
//	request.object.metadata.finalizers || []
//	request.object.spec.hostNetwork || false

// lookalikes warns of what looks like a literal and is not one. It is no error: the
// expression has a value, though hardly the one that was meant.
func (r *reader) lookalikes(n *Node, bare bool) {
	keys := map[*jmespath.Expr]bool{} // of what stands before them
	look := func(e *jmespath.Expr) bool {
		switch e.Op {
		case jmespath.Sub, jmespath.Projection, jmespath.ValueProjection, jmespath.Filter:
			keys[e.Args[1]] = true
		case jmespath.Or:
			r.flattened(e.Args[1])
		case jmespath.Compare:
			r.flattened(e.Args[0])
			r.flattened(e.Args[1])
		case jmespath.Field:
			if isWord(e) && !keys[e] {
				r.warn(e.Pos, diag.BadExpression, "%s without backticks is a field of that name, not the literal; write `%s`", e.Name, e.Name)
			}
		}
		return true
	}
	if bare {
		e, _ := jmespath.Parse(n.Str, n.Pos)
		jmespath.Walk(e, look)
		return
	}
	t, _ := jmespath.ParseTemplate(n.Str, n.Pos)
	t.Walk(look)
}

// flattened warns of an operand that is [].
func (r *reader) flattened(e *jmespath.Expr) {
	if e.Op == jmespath.Projection && e.Args[1].Op == jmespath.Current &&
		e.Args[0].Op == jmespath.Flatten && e.Args[0].Args[0].Op == jmespath.Current {
		r.warn(e.Pos, diag.BadExpression, "[] without backticks is not an empty list: it flattens the current node, and is null where that is not a list; write `[]`")
	}
}

// isWord tells of a field whose name is a literal of JSON.
func isWord(e *jmespath.Expr) bool {
	return e.Op == jmespath.Field && e.Dynamic == nil && slices.Contains([]string{"true", "false", "null"}, e.Name)
}
