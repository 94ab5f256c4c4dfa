package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// expressions warns of JMESPath that does not parse or calls what does not exist.
// It is no error: the meaning is known, for the engine reports an error on every
// request that gets there.
func (r *reader) expressions(rule *Rule) {
	rule.eachExpression(func(n *Node, bare bool) {
		if bare {
			r.expression(n)
		} else {
			r.template(n)
		}
	})
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

func (r *reader) expression(n *Node) {
	e, bad := jmespath.Parse(n.Str, n.Pos)
	if bad != nil {
		r.badExpression(*bad)
		return
	}
	for _, d := range jmespath.Check(e) {
		r.badExpression(d)
	}
}

func (r *reader) template(n *Node) {
	t, bad := jmespath.ParseTemplate(n.Str, n.Pos)
	if bad != nil {
		r.badExpression(*bad)
		return
	}
	for _, d := range t.Check() {
		r.badExpression(d)
	}
}

func (r *reader) badExpression(d diag.Diagnostic) {
	r.warn(d.Pos, diag.BadExpression, "%s; as it stands, the engine errs on every request that gets here", d.Message)
}
