package policy

import "github.com/kvap/kvap/jmespath"

// A FieldReader tells whether a CEL expression reads a field of a variable. This
// package cannot read CEL.
type FieldReader func(expression, variable, field string) bool

// AsksForOperation tells whether something in the rule, such as a precondition, reads
// the operation.
func (rule *Rule) AsksForOperation(cel FieldReader) bool {
	for _, text := range rule.celTexts() {
		if cel(text, "request", "operation") {
			return true
		}
	}
	asks := false
	rule.eachExpression(func(n *Node, bare bool) {
		visit := func(e *jmespath.Expr) bool {
			asks = asks || selectsOperation(e)
			return !asks
		}
		if !bare {
			if t, bad := jmespath.ParseTemplate(n.Str, n.Pos); bad == nil {
				t.Walk(visit)
			}
		} else if e, bad := jmespath.Parse(n.Str, n.Pos); bad == nil {
			jmespath.Walk(e, visit)
		}
	})
	return asks
}

// selectsOperation tells of request.operation, however it is selected.
func selectsOperation(e *jmespath.Expr) bool {
	if e.Op != jmespath.Sub && e.Op != jmespath.Pipe || !isField(e.Args[0], "request") {
		return false
	}
	found := false
	jmespath.Walk(e.Args[1], func(e *jmespath.Expr) bool {
		found = found || isField(e, "operation")
		return !found
	})
	return found
}

func isField(e *jmespath.Expr, name string) bool {
	return e.Op == jmespath.Field && e.Dynamic == nil && e.Name == name
}

// celTexts are the rule's expressions in CEL.
func (rule *Rule) celTexts() []string {
	var out []string
	add := func(list []CEL) {
		for _, e := range list {
			out = append(out, e.Expression)
		}
	}
	add(rule.CELPreconditions)
	if rule.Validate == nil || rule.Validate.CEL == nil {
		return out
	}
	add(rule.Validate.CEL.Variables)
	add(rule.Validate.CEL.AuditAnnotations)
	for _, v := range rule.Validate.CEL.Expressions {
		out = append(out, v.Expression, v.MessageExpression)
	}
	return out
}
