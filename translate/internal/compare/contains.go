package compare

import (
	"regexp"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Contains is membership in a list or in a string.
func Contains(l *read.Lowering, in, search read.Operand) read.Operand {
	if k := kindFound(search); k == schema.List || isMapKind(k) || search.Form == read.MultiForm { // an error, where it meets another
		panic(l.Unsupported("contains() of a list or a map"))
	}
	switch in.Form {
	case read.LitForm:
		return literalContains(l, in.Lit, search)
	case read.ErrorForm:
		return in
	case read.MultiForm:
		return Contains(l, read.SequenceOf(read.EveryPart(in)), search)
	case read.SequenceForm:
		s := in.S
		if e, ok := s.(read.Entries); ok && !e.Values {
			if name, ok := search.Lit.(string); ok && search.Form == read.LitForm {
				return hasKey(e.V, name)
			}
		}
		found := s.Quantify(l, cel.ForSome, true, func(x read.Operand) cel.Bool { return equalValues(l, x, search) })
		return read.BoolOf(found).Demanding(s.Demands(true))
	}
	switch in.V.Kind() {
	case schema.String:
		if out, ok := textContains(l, in, search); ok {
			return out
		}
	case schema.List:
		return listContains(l, in.V, search)
	case schema.Any:
		if out, ok := anyContains(l, in, search); ok {
			return out
		}
	}
	panic(l.Unsupported("this use of contains"))
}

// textContains is membership in a text, of which only texts are part. ok is false where
// the type of what is searched is not known.
func textContains(l *read.Lowering, in, search read.Operand) (_ read.Operand, ok bool) {
	text, d, known := read.Strictly(l, in)
	if search.Form == read.LitForm {
		if _, isText := search.Lit.(string); !isText {
			return falseOf(in.V), true
		}
	}
	if !known || read.KindOf(search.Typ()) != schema.String {
		return read.Operand{}, false
	}
	out, ok := partOf(l, text, search)
	return out.Demanding(d), ok
}

// partOf is: a text has what is searched, a text that may be missing, in it.
func partOf(l *read.Lowering, text cel.Value, search read.Operand) (_ read.Operand, ok bool) {
	what, ok := read.Expr(l, search.Settled())
	if !ok {
		return read.Operand{}, false
	}
	return read.BoolOf(cel.And(read.Present(l, search), text.Contains(what))), true
}

// listContains is membership in a list.
func listContains(l *read.Lowering, v read.Place, search read.Operand) read.Operand {
	found := read.Demand("", v.Found())
	if search.Form == read.LitForm {
		if w, ok := read.LiteralTree(l, search.Lit); ok && couldEqual(v.Elem(), search.Lit) {
			return read.BoolOf(w.In(v.Expr)).Demanding(found)
		}
		return falseOf(v)
	}
	what, d, ok := read.Strictly(l, search)
	if ok && search.Typ().Kind == v.Elem().Kind {
		return read.BoolOf(what.In(v.Expr)).Demanding(found, d)
	}
	some := read.ListOf{V: v, Hint: read.Hint(v)}.Quantify(l, cel.ForSome, true, func(x read.Operand) cel.Bool { return equalValues(l, x, search) })
	return read.BoolOf(some).Demanding(found, d)
}

// anyContains is membership in what turns out to be a text or a list.
func anyContains(l *read.Lowering, in, search read.Operand) (_ read.Operand, ok bool) {
	what, ofWhat, ok := read.Strictly(l, search)
	x, ofX, known := read.Strictly(l, in)
	if !ok || !known {
		return read.Operand{}, false
	}
	inText := read.LitOf(false)
	if read.KindOf(search.Typ()) == schema.String {
		inText, ok = partOf(l, x, search)
	}
	return read.Choice(read.IsString(x), inText, read.BoolOf(what.In(x))).Demanding(ofWhat, ofX), ok // argument has asked for the type
}

// falseOf is false, but an error where v, which has a size, is missing.
func falseOf(v read.Place) read.Operand {
	return read.LitOf(false).Demanding(read.Demand("", v.Found()))
}

// hasKey is: a map, which must be there, has the key.
func hasKey(v read.Place, name string) read.Operand {
	return read.BoolOf(keyIn(v, name)).Demanding(read.Demand("", v.Found()))
}

func keyIn(v read.Place, name string) cel.Bool {
	child := v.Settled().Field(name)
	switch {
	case v.Certain() && child.Never:
		return cel.False()
	case v.Certain() && child.Certain():
		return cel.True()
	case v.Certain():
		return child.Guards[len(child.Guards)-1].Cond
	case v.Kind() == schema.Object:
		if !child.Never && !child.Certain() {
			return child.Guards[len(child.Guards)-1].Cond
		}
		return cel.String(name).In(read.Dyn(v.Expr))
	}
	return cel.String(name).In(v.Expr)
}

func literalContains(l *read.Lowering, in any, search read.Operand) read.Operand {
	switch in := in.(type) {
	case []any:
		if search.Form == read.LitForm {
			for _, item := range in {
				if scalar.Same(item, search.Lit) {
					return read.LitOf(true)
				}
			}
			return read.LitOf(false)
		}
		var alts []cel.Bool
		v, d, ok := read.Strictly(l, search)
		if ok && allStrings(in) && read.KindOf(search.Typ()) == schema.String {
			list, _ := read.LiteralTree(l, in)
			return read.BoolOf(v.In(list)).Demanding(d)
		}
		for _, item := range in {
			alts = append(alts, equal(l, search, read.LitOf(item)))
		}
		return read.BoolOf(cel.Or(alts...)).Demanding(d)
	case string:
		if s, ok := search.Lit.(string); ok && search.Form == read.LitForm {
			return read.LitOf(scalar.WildMatch("*"+regexp.QuoteMeta(s)+"*", in) || strings.Contains(in, s))
		}
		if read.KindOf(search.Typ()) == schema.String {
			if out, ok := partOf(l, cel.String(in), search); ok {
				return out
			}
		}
	case nil:
		return read.TypeError("contains")
	}
	panic(l.Unsupported("this use of contains"))
}

func allStrings(vs []any) bool {
	for _, v := range vs {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return true
}
