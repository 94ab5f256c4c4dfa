package translate

import (
	"regexp"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// contains is membership in a list or in a string.
func (l *lowering) contains(in, search operand) operand {
	switch in.form {
	case litForm:
		return l.literalContains(in.lit, search)
	case errorForm:
		return in
	case sequenceForm, multiForm:
		s := l.sequence(in)
		if e, ok := s.(entries); ok && !e.values {
			if name, ok := search.lit.(string); ok && search.form == litForm {
				return boolOf(l.hasKey(e.v, name))
			}
		}
		return boolOf(s.quantify(l, cel.ForSome, true, func(x operand) cel.Bool { return l.equalValues(x, search) }))
	}
	switch in.v.kind() {
	case schema.String:
		if out, ok := l.textContains(in, search); ok {
			return out
		}
	case schema.List:
		return l.listContains(in.v, search)
	case schema.Any:
		if out, ok := l.anyContains(in, search); ok {
			return out
		}
	}
	panic(l.unsupported("this use of contains"))
}

// textContains is membership in a text, of which only texts are part. ok is false where
// the type of what is searched is not known.
func (l *lowering) textContains(in, search operand) (_ operand, ok bool) {
	text, known := l.expr(in)
	if search.form == litForm {
		if _, isText := search.lit.(string); !isText {
			return l.falseOf(in.v), true
		}
	}
	what, ok := l.expr(search)
	if !known || !ok || kindOf(search.typ()) != schema.String {
		return operand{}, false
	}
	return boolOf(text.Contains(what)), true
}

// listContains is membership in a list.
func (l *lowering) listContains(v place, search operand) operand {
	l.reads(v, true)
	if search.form == litForm {
		if w, ok := l.literalTree(search.lit); ok && couldEqual(v.elem(), search.lit) {
			return boolOf(w.In(v.expr))
		}
		return l.falseOf(v)
	}
	what, ok := l.expr(search)
	if ok && search.typ().Kind == v.elem().Kind {
		return boolOf(what.In(v.expr))
	}
	return boolOf(listOf{v: v, hint: l.hint(v)}.quantify(l, cel.ForSome, true, func(x operand) cel.Bool { return l.equalValues(x, search) }))
}

// anyContains is membership in what turns out to be a text or a list.
func (l *lowering) anyContains(in, search operand) (_ operand, ok bool) {
	what, ok := l.expr(search)
	x, known := l.expr(in)
	if !ok || !known {
		return operand{}, false
	}
	inText := litOf(false)
	if kindOf(search.typ()) == schema.String {
		inText = boolOf(x.Contains(what))
	}
	return choice(isString(x), inText, boolOf(what.In(x))), true // argument has asked for the type
}

// falseOf is false, but an error where v, which has a size, is missing.
func (l *lowering) falseOf(v place) operand {
	l.reads(v, true)
	return litOf(false)
}

// hasKey is: a map, which must be there, has the key.
func (l *lowering) hasKey(v place, name string) cel.Bool {
	child := v.settled().field(name)
	switch {
	case v.certain() && child.never:
		return cel.False()
	case v.certain() && child.certain():
		return cel.True()
	case v.certain():
		return child.guards[len(child.guards)-1].cond
	case v.kind() == schema.Object:
		l.reads(v, true)
		if !child.never && !child.certain() {
			return child.guards[len(child.guards)-1].cond
		}
		return cel.String(name).In(dyn(v.expr))
	}
	l.reads(v, true)
	return cel.String(name).In(v.expr)
}

func (l *lowering) literalContains(in any, search operand) operand {
	switch in := in.(type) {
	case []any:
		if search.form == litForm {
			for _, item := range in {
				if scalar.Same(item, search.lit) {
					return litOf(true)
				}
			}
			return litOf(false)
		}
		var alts []cel.Bool
		if v, ok := l.expr(search); ok && allStrings(in) && kindOf(search.typ()) == schema.String {
			list, _ := l.literalTree(in)
			return boolOf(v.In(list))
		}
		for _, item := range in {
			alts = append(alts, l.equal(search, litOf(item)))
		}
		return boolOf(cel.Or(alts...))
	case string:
		if s, ok := search.lit.(string); ok && search.form == litForm {
			return litOf(scalar.WildMatch("*"+regexp.QuoteMeta(s)+"*", in) || containsText(in, s))
		}
		if v, ok := l.expr(search); ok && kindOf(search.typ()) == schema.String {
			return boolOf(cel.String(in).Contains(v))
		}
	case nil:
		return typeError("contains")
	}
	panic(l.unsupported("this use of contains"))
}

func allStrings(vs []any) bool {
	for _, v := range vs {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}
