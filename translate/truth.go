package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// present is: j is found and not null.
func (l *lowering) present(j operand) cel.Bool {
	switch j.form {
	case litForm:
		return cel.Lit(j.lit != nil)
	case errorForm:
		if j.hard {
			return l.failing(j)
		}
		return cel.False()
	case sequenceForm:
		return cel.Not(j.s.null())
	case imagesForm:
		return j.images.present(l)
	case choiceForm:
		then, els := l.eitherWay(j.c,
			func() cel.Bool { return l.present(*j.then) },
			func() cel.Bool { return l.present(*j.els) })
		return cel.CondBool(j.c, then, els)
	case placeForm:
		if j.v.never {
			return cel.False()
		}
		if j.v.dynamic() && !j.traits().present {
			return cel.And(j.v.found(), cel.Not(isNull(j.v.expr)))
		}
		return j.v.found()
	}
	return cel.True()
}

// truthy is JMESPath's truth: not false, null, "", [] or {}.
func (l *lowering) truthy(j operand) cel.Bool {
	if j.form == imagesForm {
		return j.images.present(l)
	}
	if j.form == multiForm { // what is missing is null, and an element
		return cel.Lit(len(j.multi) > 0)
	}
	if b, ok := l.truthOfParts(j); ok {
		return b
	}
	return l.holds(j, false, pred{
		lit:    func(v any) cel.Bool { return cel.Lit(truth(v)) },
		traits: func(of traits) (is, known bool) { return of.truthy, of.truthy || of.falsy },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Bool:
				return isTrue(x, t)
			case schema.String:
				return x.Ne(cel.String(""))
			case schema.List, schema.Map:
				return x.Size().Compare(cel.Greater, cel.Int(0))
			case schema.Int, schema.Number:
				return cel.True()
			case schema.Object: // {} is false; the type checker knows no == of an object type
				return dyn(x).Ne(cel.Map())
			case schema.IntOrString:
				return x.Ne(cel.String(""))
			}
			return cel.Not(amongst(x, cel.Null(), cel.Lit(false).Value, cel.String(""), cel.List(), cel.Map()))
		},
		sequence: func(s sequence) cel.Bool {
			if list, ok := s.list(l, false); ok {
				if _, plain := s.(listOf); plain {
					return list.Size().Compare(cel.Greater, cel.Int(0))
				}
			}
			return s.quantify(l, cel.ForSome, false, func(operand) cel.Bool { return cel.True() })
		},
	})
}

// truthOfParts is the truth of a comparison, which is false where it is null, and
// of && and ||, of which the side that is taken need not be looked at again.
func (l *lowering) truthOfParts(j operand) (cel.Bool, bool) {
	switch {
	case j.form == placeForm && j.v.origin == fromOrdering:
		return j.v.expr.AsBool(), true
	case j.form == choiceForm:
		then, els := l.eitherWay(j.c,
			func() cel.Bool { return l.truthy(*j.then) },
			func() cel.Bool { return l.truthy(*j.els) })
		switch {
		case cel.Equal(els.Value, j.c.Value):
			return cel.And(j.c, then), true
		case cel.Equal(then.Value, j.c.Value):
			return cel.Or(j.c, els), true
		}
	}
	return cel.Bool{}, false
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
