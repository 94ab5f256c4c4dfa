package mutate

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// What a patch writes is a value that the kind has a place for: natively another is refused,
// while a webhook's is changed or dropped by the server.

// maxExact is the largest integer that Kyverno writes as it stands.
const maxExact = 1 << 53

// written is a value of a patch for a place of a type. typ names the type of an apply
// configuration, or is empty where maps are written.
func written(l *read.Lowering, n *policy.Node, t *schema.Type, typ string) cel.Value {
	l.SetPos(n.Pos)
	switch n.Kind {
	case policy.String:
		return writtenText(l, n, t)
	case policy.List:
		if read.KindOf(t) != schema.List && read.KindOf(t) != schema.Any {
			panic(unfit(l, n))
		}
		var items []cel.Value
		for _, item := range n.Items {
			if item.Kind == policy.Null {
				panic(l.Unsupported("a null in a list that a patch writes"))
			}
			if !isEmptyMap(item) {
				items = append(items, written(l, item, elemOf(t), typ))
			}
		}
		if typ == "" || !slices.ContainsFunc(n.Items, func(item *policy.Node) bool { return item.Kind == policy.Map }) {
			items = sameTyped(items)
		}
		return cel.List(items...)
	case policy.Map:
		return writtenMap(l, n, t, typ)
	case policy.Null:
		panic(l.Unsupported("a null that a patch writes"))
	}
	return constant(l, n.Value(), n, t)
}

// writtenMap is a map without what is null or an empty map in it, which a patch never writes.
func writtenMap(l *read.Lowering, n *policy.Node, t *schema.Type, typ string) cel.Value {
	var names []string
	var values []cel.Value
	var fields []cel.StructField
	for _, f := range sortedFields(n) {
		kind, name := splitPatchAnchor(f.Key)
		switch {
		case kind != anchor.Plain || name == "$patch" || query.HasVariables(&policy.Node{Kind: policy.String, Str: f.Key}):
			l.SetPos(f.Pos)
			panic(l.Unsupported("an anchor, a directive or a variable in a key of what a patch adds"))
		case f.Value.Kind == policy.Null || isEmptyMap(f.Value):
			continue
		}
		inner := ""
		if typ != "" {
			inner = typ + "." + name
		}
		value := written(l, f.Value, fieldType(l, t, f), inner)
		fields = append(fields, cel.StructField{Name: name, Value: value})
		names, values = append(names, name), append(values, value)
	}
	if typ != "" && read.KindOf(t) == schema.Object {
		return cel.Struct(typ, fields...)
	}
	return mapLiteral(names, values)
}

// mapLiteral is a map with values of any types.
func mapLiteral(names []string, values []cel.Value) cel.Value {
	entries := make([]cel.Entry, len(names))
	for i, value := range sameTyped(values) {
		entries[i] = cel.Entry{Key: cel.String(names[i]), Value: value}
	}
	return cel.Map(entries...)
}

// sameTyped makes the values of a literal dyn where they may not be of one type, which API
// servers ask of them. Those of the object are dyn.
func sameTyped(values []cel.Value) []cel.Value {
	same := true
	for _, v := range values {
		same = same && v.LiteralType() == values[0].LiteralType()
	}
	if len(values) < 2 || same && values[0].LiteralType() != "" {
		return values
	}
	out := make([]cel.Value, len(values))
	for i, v := range values {
		out[i] = v
		if v.LiteralType() != "dyn" {
			out[i] = read.Dyn(v)
		}
	}
	return out
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
func fieldType(l *read.Lowering, t *schema.Type, f policy.Field) *schema.Type {
	switch read.KindOf(t) {
	case schema.Object:
		if field, ok := t.Fields[f.Key]; ok {
			return field.Type
		}
		if t.Open {
			return read.AnyType()
		}
	case schema.Map:
		return t.Elem
	case schema.Any:
		return read.AnyType()
	}
	l.SetPos(f.Pos)
	panic(l.Unsupported("a field that the kind does not have, " + f.Key + ","))
}

func elemOf(t *schema.Type) *schema.Type {
	if t == nil || t.Elem == nil {
		return read.AnyType()
	}
	return t.Elem
}

// unfit is the refusal of a value that the kind has no place for.
func unfit(l *read.Lowering, n *policy.Node) read.Refusal {
	l.SetPos(n.Pos)
	return l.Unsupported("a value of another type than the field has")
}

// constant is a literal of a patch.
func constant(l *read.Lowering, v any, n *policy.Node, t *schema.Type) cel.Value {
	if i, ok := v.(int64); ok && (i > maxExact || i < -maxExact) {
		panic(l.Unsupported("an integer that Kyverno rounds"))
	}
	switch kind := read.KindOf(t); v := v.(type) {
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
	panic(unfit(l, n))
}

// writtenText is a text of a patch, in which there may be variables.
func writtenText(l *read.Lowering, n *policy.Node, t *schema.Type) cel.Value {
	j := query.Template(l, query.ParseTemplate(n.Str, n.Pos))
	if j.Form == read.LitForm {
		if f, ok := j.Lit.(float64); ok && f == math.Trunc(f) && math.Abs(f) < maxExact {
			return constant(l, int64(f), n, t)
		}
		return constant(l, j.Lit, n, t)
	}
	l.SetPos(n.Pos)
	if mayBeNull(j) {
		panic(l.Unsupported("a variable that may be null, which takes the field away,"))
	}
	got, want := read.KindOf(j.Typ()), read.KindOf(t)
	if got != want && want != schema.Any && (want != schema.IntOrString || got != schema.String && got != schema.Int) {
		panic(unfit(l, n))
	}
	switch got {
	case schema.String, schema.Int, schema.Bool:
	default:
		panic(l.Unsupported("a variable that is no text, number or boolean"))
	}
	v, ok := read.Expr(l, j)
	if !ok {
		panic(l.Unsupported("a variable that is not of the request"))
	}
	return v
}

// mayBeNull tells of a value that may be null where reading it is no error.
func mayBeNull(j read.Operand) bool {
	switch j.Form {
	case read.LitForm:
		return j.Lit == nil
	case read.PlaceForm:
		return j.V.Dynamic() || !j.V.Shaped().IsTrue()
	case read.ChoiceForm:
		return mayBeNull(*j.Then) || mayBeNull(*j.Els)
	}
	return true
}

// What a mutation says again and again at some length is a variable. Of several mutations nothing
// is: the object is another one to each of them.

const (
	// repeatedPart is the shortest text that is worth a name.
	repeatedPart = 60
	// anotherVariable is what the lines of a variable are worth, in characters.
	anotherVariable = 40
)

// nameParts makes variables of what the one mutation of a draft repeats.
func nameParts(d *mutating.Draft) {
	if len(d.Mutations) != 1 {
		return
	}
	for {
		part, name := mostRepeated(d)
		if part.IsZero() {
			return
		}
		m := &d.Mutations[0]
		d.Variables = append(d.Variables, vap.Variable{Pos: m.Pos, Name: name, Expr: part})
		m.Expr = m.Expr.Rewrite(func(v cel.Value) cel.Value {
			if cel.Equal(v, part) {
				return native.VariableNamed(name)
			}
			return v
		})
	}
}

// mostRepeated is the part whose name makes a draft shortest; the zero Value for none.
func mostRepeated(d *mutating.Draft) (best cel.Value, name string) {
	type repeated struct {
		part  cel.Value
		times int
	}
	var order []string
	found := map[string]*repeated{}
	d.Mutations[0].Expr.Walk(func(v cel.Value) bool {
		if text := v.String(); len(text) >= repeatedPart && isNameable(v) {
			if found[text] == nil {
				found[text], order = &repeated{part: v}, append(order, text)
			}
			found[text].times++
		}
		return true
	})
	most := 0
	for _, text := range order {
		r := found[text]
		called := nameOfPart(r.part, d.Variables)
		saved := (r.times-1)*len(text) - r.times*len("variables."+called) - anotherVariable
		if saved > most {
			best, name, most = r.part, called, saved
		}
	}
	return best, name
}

// isNameable tells of a condition or a value of the request that no loop binds anything in, and
// that is none of what a mutation makes.
func isNameable(v cel.Value) bool {
	if v.MakesStruct() || !v.IsSelection() && !v.AsBool().Boolean() {
		return false
	}
	return !slices.ContainsFunc(v.Idents(), func(name string) bool {
		return name != "object" && name != "oldObject" && name != "request" && name != "variables" && name != "params" && name != "namespaceObject"
	})
}

// nameOfPart names a part after the last field that it reads.
func nameOfPart(v cel.Value, taken []vap.Variable) string {
	field := ""
	v.Walk(func(v cel.Value) bool {
		if field == "" {
			field = v.LastField()
		}
		return field == ""
	})
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) && r < unicode.MaxASCII {
			return r
		}
		return -1
	}, field)
	if name != "" && v.AsBool().Boolean() {
		name = "has" + strings.ToUpper(name[:1]) + name[1:]
	}
	if name == "" || cel.Taken(name) {
		name = "part"
	}
	return native.FreshName(name, taken)
}
