package translate

import (
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

func (l *lowering) fieldOf(e *jmespath.Expr, cur *operand) operand {
	if e.Dynamic != nil {
		key := l.template(e.Dynamic)
		if key.form == choiceForm && key.some(func(j operand) bool { return j.form == litForm && j.lit == nil }) {
			return l.inEach(key, func(key operand) operand { return l.fieldCalled(cur, key) })
		}
		return l.fieldCalled(cur, key)
	}
	return l.member(cur, e.Name)
}

// fieldCalled is the value of a key that stands in the query as a text.
func (l *lowering) fieldCalled(cur *operand, key operand) operand {
	if key.form == litForm {
		return l.member(cur, scalar.Text(key.lit))
	}
	return l.dynamicField(cur, key)
}

func (l *lowering) member(cur *operand, name string) operand {
	if cur == nil {
		return l.topLevel(name)
	}
	return l.inEach(*cur, func(j operand) operand { return l.known(l.field(j, name)) })
}

// field is j.name.
func (l *lowering) field(j operand, name string) operand {
	switch j.form {
	case placeForm:
		return operandAt(j.v.field(name))
	case litForm:
		m, ok := j.lit.(map[string]any)
		if !ok {
			return litOf(nil)
		}
		v, ok := m[name]
		if !ok {
			return operand{form: errorForm, hint: name}
		}
		return litOf(v)
	case hashForm:
		for i, k := range j.keys {
			if k == name {
				return l.read(j.multi[i])
			}
		}
		return l.unknownKey(j, name)
	case imagesForm:
		panic(l.unsupported("the image of one container"))
	case errorForm:
		return j
	}
	return litOf(nil)
}

// dynamicField is the value of a key that is only known at run time.
func (l *lowering) dynamicField(cur *operand, key operand) operand {
	if k := kindOf(key.typ()); k == schema.Bool || k == schema.Int || k == schema.IntOrString {
		key = stringOf(l.text(key)) // as it stands in the query
	}
	k, ok := l.expr(key)
	if cur == nil || cur.form != placeForm || !ok || cur.v.kind() != schema.Map {
		panic(l.unsupported("a field whose name is a variable"))
	}
	v := cur.v
	w := place{expr: v.expr.Index(k), typ: v.elem(), origin: v.origin}
	w.guards = append(v.guards[:len(v.guards):len(v.guards)], guard{cond: k.In(v.expr)})
	if v.certain() {
		w.opt = v.expr.OptIndex(k)
	} else if !v.opt.IsZero() {
		w.opt = v.opt.OptIndex(k)
	}
	return operandAt(w)
}

// index is j[n]; null beyond the ends.
func (l *lowering) index(j operand, n int) operand {
	switch j.form {
	case litForm:
		if list, ok := j.lit.([]any); ok {
			if n < 0 {
				n += len(list)
			}
			if n >= 0 && n < len(list) {
				return litOf(list[n])
			}
		}
		return litOf(nil)
	case errorForm:
		return j
	case placeForm:
		if j.v.kind() == schema.List || j.v.dynamic() {
			return operandAt(j.v.item(n))
		}
		return nullWhereFound(j.v)
	case multiForm:
		panic(l.unsupported("an element of a selection"))
	case sequenceForm:
		if item, ok := l.imageItem(j, n); ok {
			return item
		}
		s := l.sequence(j)
		list, ok := l.inOrder(s)
		if !ok {
			panic(l.unsupported("an element of a nested projection, before Kubernetes 1.35"))
		}
		return operandAt(placeOf(list, &schema.Type{Kind: schema.List, Elem: s.elem()}).item(n)).softly()
	}
	return litOf(nil)
}

// nullWhereFound is null, and an error where a key on the way to v is missing.
func nullWhereFound(v place) operand {
	w, c := v.demanded()
	return choice(c, choice(w.keysFound(), litOf(nil), operand{form: errorForm, hint: "missing"}), typeError("value"))
}
