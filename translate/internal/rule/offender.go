package rule

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// nameOffenders makes the message of a rule that is one loop over named elements,
// as containers are, say which of them violate it. The names become a variable;
// the rule holds where there are none.
func nameOffenders(l *read.Lowering, u *pack.Unit) {
	list, x, body, ok := u.Holds.Expr.Loop()
	if !ok || u.Holds.Errs || !namedElements(l, list) {
		return
	}
	fails := cel.Not(body).Simplify()
	if search := body.Violation(nil).Simplify(); negations(search) < negations(fails) {
		fails = search
	}
	bad := list.Macro(cel.MacroFilter, x, fails.Value).Macro(cel.MacroMap, x, x.Field("name"))
	binder := x.String()
	names := read.Let(l, "bad"+strings.ToUpper(binder[:1])+binder[1:]+"s", bad)
	u.Holds.Expr = names.Size().Eq(cel.Int(0))
	u.Message = u.Message.Naming(names)
}

// negations is how often a condition says not.
func negations(b cel.Bool) int { return strings.Count(b.String(), "!") }

// namedElements tells that the elements of a list, or of the variable for joined
// lists, always have a name.
func namedElements(l *read.Lowering, list cel.Value) bool {
	t := query.ListType(l, list)
	if path, ok := list.Path(); ok && len(path) == 2 && path[0] == "variables" {
		t = l.ListTypes[path[1]]
	}
	if t == nil || t.Elem == nil || t.Elem.Kind != schema.Object {
		return false
	}
	f, ok := t.Elem.Fields["name"]
	return ok && f.Required && f.Type.Kind == schema.String
}
