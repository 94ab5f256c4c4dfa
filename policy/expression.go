package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// expressions warns of the JMESPath of a rule.
func (r *reader) expressions(rule *Rule) {
	r.ds = append(r.ds, rule.BadExpressions()...)
	rule.eachExpression(r.lookalikes)
}

// BadExpressions warns of JMESPath that does not parse or calls what does not exist.
// Reading it is no error: the meaning is known, for the engine reports an error on every
// request that gets there.
func (rule *Rule) BadExpressions() (out diag.List) {
	rule.eachExpression(func(n *Node, bare bool) {
		for _, d := range problems(n, bare) {
			out = append(out, BadExpression(d))
		}
	})
	return out
}

// eachExpression visits the texts of the rule that hold JMESPath: bare, or as the
// variables of a template.
func (rule *Rule) eachExpression(visit func(n *Node, bare bool)) {
	for _, part := range []string{"context", "preconditions", "validate", "mutate", "generate"} {
		if n := rule.Source.Get(part); n != nil && !(part == "validate" && rule.Validate != nil && rule.Validate.CEL != nil) {
			n.eachExpression(visit)
		}
	}
}

func (n *Node) eachExpression(visit func(n *Node, bare bool)) {
	switch n.Kind {
	case String:
		if strings.Contains(n.Str, "{{") {
			visit(n, false)
		}
	case List:
		for _, item := range n.Items {
			item.eachExpression(visit)
		}
	case Map:
		for _, f := range n.Fields {
			if f.Value.Kind == String && isExpression(f.Pos.Path) && !strings.Contains(f.Value.Str, "{{") {
				visit(f.Value, true)
				continue
			}
			f.Value.eachExpression(visit)
		}
	}
}

// isExpression tells of the keys that hold bare JMESPath. A pattern may hold keys
// of the same name, so the place counts.
func isExpression(path string) bool {
	for _, end := range []string{"].list", "].variable.jmesPath", "].apiCall.jmesPath", "].imageRegistry.jmesPath", "].globalReference.jmesPath"} {
		if before, ok := strings.CutSuffix(path, end); ok {
			key := "context["
			if end == "].list" {
				key = "foreach["
			}
			before = strings.TrimRight(before, "0123456789")
			return strings.HasSuffix(before, "."+key)
		}
	}
	return false
}

// problems are what is wrong with an expression, or with those of a template.
func problems(n *Node, bare bool) diag.List {
	if bare {
		e, bad := jmespath.Parse(n.Str, n.Pos)
		if bad != nil {
			return diag.List{*bad}
		}
		return jmespath.Check(e)
	}
	t, bad := jmespath.ParseTemplate(n.Str, n.Pos)
	if bad != nil {
		return diag.List{*bad}
	}
	return t.Check()
}

// BadExpression is a warning of what is wrong with JMESPath, with what comes of it.
func BadExpression(d diag.Diagnostic) diag.Diagnostic {
	return diag.Warnf(d.Pos, diag.BadExpression, "%s; as it stands, the engine errs on every request that gets here", d.Message)
}
