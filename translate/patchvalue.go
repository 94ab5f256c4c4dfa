package translate

import (
	"math"
	"strconv"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
)

// What a patch writes is a value that the kind has a place for: natively another is refused,
// while a webhook's is changed or dropped by the server.

// maxExact is the largest integer that Kyverno writes as it stands.
const maxExact = 1 << 53

// written is a value of a patch for a place of a type. typ names the type of an apply
// configuration, or is empty where maps are written.
func (l *lowering) written(n *policy.Node, t *schema.Type, typ string) cel.Value {
	l.setPos(n.Pos)
	switch n.Kind {
	case policy.String:
		return l.writtenText(n, t)
	case policy.List:
		if kindOf(t) != schema.List && kindOf(t) != schema.Any {
			panic(l.unfit(n))
		}
		var items []cel.Value
		same := true
		for _, item := range n.Items {
			if item.Kind == policy.Null {
				panic(l.unsupported("a null in a list that a patch writes"))
			}
			if isEmptyMap(item) {
				continue
			}
			items = append(items, l.written(item, elemOf(t), typ))
			same = same && item.Kind == n.Items[0].Kind
		}
		if !same {
			for i := range items {
				items[i] = dyn(items[i])
			}
		}
		return cel.List(items...)
	case policy.Map:
		return l.writtenMap(n, t, typ)
	case policy.Null:
		panic(l.unsupported("a null that a patch writes"))
	}
	return l.constant(n.Value(), n, t)
}

// writtenMap is a map without what is null or an empty map in it, which a patch never writes.
func (l *lowering) writtenMap(n *policy.Node, t *schema.Type, typ string) cel.Value {
	var entries []cel.Entry
	var fields []cel.StructField
	for _, f := range sortedFields(n) {
		kind, name := splitPatchAnchor(f.Key)
		switch {
		case kind != anchor.Plain || name == "$patch" || hasVariables(&policy.Node{Kind: policy.String, Str: f.Key}):
			l.setPos(f.Pos)
			panic(l.unsupported("an anchor, a directive or a variable in a key of what a patch adds"))
		case f.Value.Kind == policy.Null || isEmptyMap(f.Value):
			continue
		}
		inner := ""
		if typ != "" {
			inner = typ + "." + name
		}
		value := l.written(f.Value, l.fieldType(t, f), inner)
		fields = append(fields, cel.StructField{Name: name, Value: value})
		entries = append(entries, cel.Entry{Key: cel.String(name), Value: value})
	}
	if typ != "" && kindOf(t) == schema.Object {
		return cel.Struct(typ, fields...)
	}
	return cel.Map(sameTyped(entries)...)
}

// sameTyped makes the values of a map literal dyn where they are not all texts, which CEL
// wants to be of one type.
func sameTyped(entries []cel.Entry) []cel.Entry {
	texts := 0
	for _, e := range entries {
		if e.Value.IsText() {
			texts++
		}
	}
	if texts == len(entries) || len(entries) == 1 {
		return entries
	}
	for i := range entries {
		entries[i].Value = dyn(entries[i].Value)
	}
	return entries
}

// isEmptyMap tells of a map in which nothing is that a patch writes.
func isEmptyMap(n *policy.Node) bool {
	if n.Kind != policy.Map {
		return false
	}
	for _, f := range n.Fields {
		if !isEmptyMap(f.Value) {
			return false
		}
	}
	return true
}

// fieldType is the type of a field of what is written.
func (l *lowering) fieldType(t *schema.Type, f policy.Field) *schema.Type {
	switch kindOf(t) {
	case schema.Object:
		if field, ok := t.Fields[f.Key]; ok {
			return field.Type
		}
		if t.Open {
			return anyType()
		}
	case schema.Map:
		return t.Elem
	case schema.Any:
		return anyType()
	}
	l.setPos(f.Pos)
	panic(l.unsupported("a field that the kind does not have, " + f.Key + ","))
}

func elemOf(t *schema.Type) *schema.Type {
	if t == nil || t.Elem == nil {
		return anyType()
	}
	return t.Elem
}

// unfit is the refusal of a value that the kind has no place for.
func (l *lowering) unfit(n *policy.Node) refusal {
	l.setPos(n.Pos)
	return l.unsupported("a value of another type than the field has")
}

// constant is a literal of a patch.
func (l *lowering) constant(v any, n *policy.Node, t *schema.Type) cel.Value {
	if i, ok := v.(int64); ok && (i > maxExact || i < -maxExact) {
		panic(l.unsupported("an integer that Kyverno rounds"))
	}
	switch kind := kindOf(t); v := v.(type) {
	case string:
		if kind == schema.String || kind == schema.IntOrString || kind == schema.Any {
			return cel.String(v)
		}
	case bool:
		if kind == schema.Bool || kind == schema.Any {
			return cel.Lit(v).Value
		}
	case int64:
		switch {
		case kind == schema.Int || kind == schema.IntOrString || kind == schema.Number || kind == schema.Any:
			return cel.Int(v)
		case kind == schema.String && t.Format == schema.Quantity:
			return cel.String(strconv.FormatInt(v, 10))
		}
	case float64:
		switch {
		case kind == schema.Number:
			return cel.Double(v)
		case v == math.Trunc(v) && math.Abs(v) < maxExact && (kind == schema.Int || kind == schema.IntOrString):
			return cel.Int(int64(v))
		case kind == schema.String && t.Format == schema.Quantity:
			return cel.String(strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	panic(l.unfit(n))
}

// writtenText is a text of a patch, in which there may be variables.
func (l *lowering) writtenText(n *policy.Node, t *schema.Type) cel.Value {
	j := l.template(l.parseTemplate(n.Str, n.Pos))
	if j.form == litForm {
		if f, ok := j.lit.(float64); ok && f == math.Trunc(f) && math.Abs(f) < maxExact {
			return l.constant(int64(f), n, t)
		}
		return l.constant(j.lit, n, t)
	}
	l.setPos(n.Pos)
	if mayBeNull(j) {
		panic(l.unsupported("a variable that may be null, which takes the field away,"))
	}
	got, want := kindOf(j.typ()), kindOf(t)
	if got != want && want != schema.Any && (want != schema.IntOrString || got != schema.String && got != schema.Int) {
		panic(l.unfit(n))
	}
	switch got {
	case schema.String, schema.Int, schema.Bool:
	default:
		panic(l.unsupported("a variable that is no text, number or boolean"))
	}
	v, ok := l.expr(j)
	if !ok {
		panic(l.unsupported("a variable that is not of the request"))
	}
	return v
}

// mayBeNull tells of a value that may be null where reading it is no error.
func mayBeNull(j operand) bool {
	switch j.form {
	case litForm:
		return j.lit == nil
	case placeForm:
		return j.v.dynamic() || !j.v.shaped().IsTrue()
	case choiceForm:
		return mayBeNull(*j.then) || mayBeNull(*j.els)
	}
	return true
}

// unvalidated is a type as it is before an object is validated: what the Go type of a kind
// always writes is there, and what only validation asks for may not be.
func unvalidated(t *schema.Type, known map[*schema.Type]*schema.Type) *schema.Type {
	if t == nil {
		return nil
	}
	if out, ok := known[t]; ok {
		return out
	}
	out := *t
	known[t] = &out
	out.Elem = unvalidated(t.Elem, known)
	if t.Fields != nil {
		out.Fields = make(map[string]*schema.Field, len(t.Fields))
	}
	for name, f := range t.Fields {
		g := *f
		g.Type = unvalidated(f.Type, known)
		g.Required = f.Required && (f.Mandatory || isStructural(name) || name == "apiVersion" || name == "kind")
		if f.Mandatory && !g.Required && g.Type.Kind == schema.List { // which Go writes as null when it is empty
			list := *g.Type
			list.Nullable, g.Type = true, &list
		}
		out.Fields[name] = &g
	}
	return &out
}
