package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// nameOffenders makes the message of a rule that is one loop over named elements,
// as containers are, say which of them violate it. The names become a variable;
// the rule holds where there are none.
func (l *lowering) nameOffenders(u *unit) {
	list, x, body, ok := u.holds.b.Loop()
	if !ok || u.holds.errs || !l.namedElements(list) {
		return
	}
	bad := list.Macro(cel.MacroFilter, x, cel.Not(body).Simplify().Value).Macro(cel.MacroMap, x, x.Field("name"))
	binder := x.String()
	names := l.let("bad"+strings.ToUpper(binder[:1])+binder[1:]+"s", bad)
	u.holds.b = names.Size().Eq(cel.Int(0))
	text := cel.String(u.message.text + " (")
	if u.message.expr != nil {
		text = u.message.expr.Plus(cel.String(" ("))
	}
	m := text.Plus(names.Call("join", cel.String(", "))).Plus(cel.String(")"))
	u.message.expr = &m
}

// namedElements tells that the elements of a list, or of the variable for joined
// lists, always have a name.
func (l *lowering) namedElements(list cel.Value) bool {
	t := l.listType(list)
	if path, ok := list.Path(); ok && len(path) == 2 && path[0] == "variables" {
		t = l.listTypes[path[1]]
	}
	if t == nil || t.Elem == nil || t.Elem.Kind != schema.Object {
		return false
	}
	f, ok := t.Elem.Fields["name"]
	return ok && f.Required && f.Type.Kind == schema.String
}
