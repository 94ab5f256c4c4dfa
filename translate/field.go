package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

func (l *lowering) fieldOf(e *jmespath.Expr, cur *jval) jval {
	if e.Dynamic != nil {
		key := l.template(e.Dynamic)
		if lit, ok := key.lit.(string); ok && key.form == litForm {
			return l.member(cur, lit)
		}
		return l.dynamicField(cur, key)
	}
	return l.member(cur, e.Name)
}

func (l *lowering) member(cur *jval, name string) jval {
	if cur == nil {
		return l.root(name)
	}
	return cur.over(func(j jval) jval { return l.known(l.field(j, name)) })
}

// field is j.name.
func (l *lowering) field(j jval, name string) jval {
	switch j.form {
	case valForm:
		return valOf(j.v.field(name))
	case litForm:
		m, ok := j.lit.(map[string]any)
		if !ok {
			return litOf(nil)
		}
		v, ok := m[name]
		if !ok {
			return jval{form: errorForm, hint: name}
		}
		return litOf(v)
	case hashForm:
		for i, k := range j.keys {
			if k == name {
				return j.multi[i]
			}
		}
		return l.unknownKey(j, name)
	case imagesForm:
		return j.images.named(cel.String(name))
	case imageForm:
		return l.imagePart(j, name)
	case errorForm:
		return j
	}
	return litOf(nil)
}

// dynamicField is the value of a key that is only known at run time.
func (l *lowering) dynamicField(cur *jval, key jval) jval {
	k, ok := l.expr(key)
	if ok && cur != nil && cur.form == imagesForm {
		return cur.images.named(k)
	}
	if cur == nil || cur.form != valForm || !ok || cur.v.kind() != schema.Map {
		panic(l.unsupported("a field whose name is a variable"))
	}
	v := cur.v
	w := val{expr: v.expr.Index(k), typ: v.elem()}
	w.guards = append(v.guards[:len(v.guards):len(v.guards)], guard{cond: k.In(v.expr)})
	if v.certain() {
		w.opt = v.expr.OptIndex(k)
	} else if !v.opt.IsZero() {
		w.opt = v.opt.OptIndex(k)
	}
	return valOf(w)
}

// index is j[n]; null beyond the ends.
func (l *lowering) index(j jval, n int) jval {
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
	case valForm:
		if j.v.kind() == schema.List || j.v.dynamic() {
			return valOf(j.v.item(n))
		}
		return litOf(nil)
	case streamForm, multiForm:
		if item, ok := l.imageItem(j, n); ok {
			return item
		}
		s := l.elements2(j)
		list, ok := s.list(l, false)
		if !ok {
			panic(l.unsupported("an element of a nested projection, before Kubernetes 1.35"))
		}
		return valOf(at(list, &schema.Type{Kind: schema.List, Elem: s.elem()}).item(n)).softly()
	}
	return litOf(nil)
}
