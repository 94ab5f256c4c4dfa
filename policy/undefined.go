package policy

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
)

// undefined warns of variables that no request has and no context entry defines. It
// is no error: they are missing wherever they are read.
func (r *reader) undefined(rule *Rule) {
	defined := map[string]bool{"request": true, "images": true, "serviceAccountName": true, "serviceAccountNamespace": true, "target": true}
	for _, part := range []string{"context", "validate", "mutate", "generate"} {
		rule.Source.Get(part).define(part, defined)
	}
	rule.eachExpression(func(n *Node, bare bool) {
		if strings.HasSuffix(n.Pos.Path, ".message") || bare && !strings.HasSuffix(n.Pos.Path, "].list") {
			return // a message is shown as written; other bare ones are about a value of their own
		}
		for _, e := range roots(n, bare) {
			switch {
			case isWord(e) || e.Dynamic != nil: // lookalikes tells of the one, and each request has another of these
				continue
			case e.Name == "":
				r.warn(e.Pos, diag.BadExpression, `"" is a field without a name, not an empty text, so it is missing on every request; write ''`)
				continue
			}
			if name := strings.TrimRight(e.Name, "0123456789"); !defined[e.Name] && !(defined["element"] && (name == "element" || name == "elementIndex")) {
				r.warn(e.Pos, diag.BadExpression, "nothing defines %s, so it is missing on every request; correct the name, or add it to the context of the rule", e.Name)
			}
		}
	})
}

// define adds the names that are defined at or below a key.
func (n *Node) define(key string, defined map[string]bool) {
	if n == nil {
		return
	}
	for _, item := range n.Items {
		if name := item.Get("name"); key == "context" && name != nil {
			first, _, _ := strings.Cut(name.Str, ".")
			defined[first] = true
		}
		item.define("", defined)
	}
	for _, f := range n.Fields {
		defined["element"] = defined["element"] || f.Key == "foreach"
		f.Value.define(f.Key, defined)
	}
}

// roots are the fields that a text's expressions look up in no other value.
func roots(n *Node, bare bool) []*jmespath.Expr {
	if bare {
		e, bad := jmespath.Parse(n.Str, n.Pos)
		if bad != nil {
			return nil
		}
		return rootsOf(e)
	}
	t, bad := jmespath.ParseTemplate(n.Str, n.Pos)
	if bad != nil {
		return nil
	}
	return rootsOfTemplate(t)
}

func rootsOfTemplate(t *jmespath.Template) (out []*jmespath.Expr) {
	for _, p := range t.Parts {
		if p.Var != nil && p.Var.Expr != nil {
			out = append(out, rootsOf(p.Var.Expr)...)
		}
	}
	return out
}

func rootsOf(e *jmespath.Expr) []*jmespath.Expr {
	behind := []jmespath.Op{jmespath.Sub, jmespath.Index, jmespath.Slice, jmespath.Flatten, jmespath.Projection,
		jmespath.ValueProjection, jmespath.Filter, jmespath.Pipe}
	switch {
	case e.Op == jmespath.Field && e.Dynamic == nil:
		return []*jmespath.Expr{e}
	case e.Op == jmespath.ExpRef:
		return nil
	case slices.Contains(behind, e.Op):
		return rootsOf(e.Args[0])
	}
	var out []*jmespath.Expr
	for _, arg := range e.Args {
		out = append(out, rootsOf(arg)...)
	}
	return out
}
