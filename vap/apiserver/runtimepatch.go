package apiserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kvap/kvap/schema"
)

// A patchCheck looks at what an expression makes patches of. To the API server, Object
// literals may have any fields, and paths lead anywhere, until a request is there.
type patchCheck struct {
	tree *ast.AST
	kind string       // of the object
	root *schema.Type // of the object; nil for one that is not known
	out  *Checked
}

// patches tells which fields are set that objects do not have, and what of a patch is
// of another type than the field.
func (t *Typed) patches(tree *ast.AST, out *Checked) {
	c := patchCheck{tree, t.shapes.kind, t.shapes.object, out}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.StructKind {
			return
		}
		name := e.AsStruct().TypeName()
		switch {
		case name == mutation.JSONPatchTypeName:
			c.operation(e)
		case name == mutation.ObjectTypeName, strings.HasPrefix(name, mutation.ObjectTypeName+"."):
			c.literal(e, strings.Split(name, ".")[1:])
		}
	}))
}

func (c patchCheck) placeOf(id int64) LineColumn {
	at := c.tree.SourceInfo().GetStartLocation(id)
	return LineColumn{at.Line(), at.Column() + 1}
}

func (c patchCheck) problem(id int64, format string, args ...any) {
	c.out.Problems = append(c.out.Problems, Problem{LineColumn: c.placeOf(id), Message: fmt.Sprintf(format, args...)})
}

// literal looks at Object.spec{...}, whose path is that of its type.
func (c patchCheck) literal(e ast.Expr, path []string) {
	of := c.root
	for _, name := range path {
		of = memberOf(of, name)
	}
	for _, entry := range e.AsStruct().Fields() {
		f := entry.AsStructField()
		for _, name := range literalsIn(f.Value()) {
			if want := e.AsStruct().TypeName() + "." + f.Name(); name != want {
				c.problem(f.Value().ID(), "the field %s wants %s{}, not %s{}", f.Name(), want, name)
			}
		}
		if member, known := c.field(of, path, f.Name(), entry.ID()); known {
			c.out.Hits = append(c.out.Hits, c.placeOf(entry.ID()))
			c.fits(member, f.Value(), f.IsOptional(), strings.Join(append(slices.Clone(path), f.Name()), "."))
		}
	}
}

// field is the type of a field; known is false where nothing is to be said of it.
func (c patchCheck) field(of *schema.Type, path []string, name string, id int64) (t *schema.Type, known bool) {
	of = elementOf(of)
	if of == nil || of.Kind != schema.Object {
		return nil, false
	}
	if f := of.Fields[name]; f != nil {
		return f.Type, true
	}
	if of.Open {
		return nil, false
	}
	var fields []string
	for name := range of.Fields {
		fields = append(fields, name)
	}
	slices.Sort(fields)
	c.out.Misses = append(c.out.Misses, Miss{Kind: c.kind, Path: strings.Join(path, "."), Field: name, Fields: fields, Written: true, LineColumn: c.placeOf(id)})
	return nil, false
}

// memberOf is the type of a field, through the lists and maps that it is in; nil where
// that is not known.
func memberOf(t *schema.Type, name string) *schema.Type {
	t = elementOf(t)
	if t == nil || t.Kind != schema.Object || t.Fields[name] == nil {
		return nil
	}
	return t.Fields[name].Type
}

// elementOf is what is in a list, or in a map: names of types pass over both.
func elementOf(t *schema.Type) *schema.Type {
	for t != nil && (t.Kind == schema.List || t.Kind == schema.Map) {
		t = t.Elem
	}
	return t
}

// literalsIn are the types of the literals that are a value, or are in the list that
// it is.
func literalsIn(e ast.Expr) []string {
	switch e.Kind() {
	case ast.StructKind:
		return []string{e.AsStruct().TypeName()}
	case ast.ListKind:
		var out []string
		for _, item := range e.AsList().Elements() {
			out = append(out, literalsIn(item)...)
		}
		return out
	}
	return nil
}

// fits reports a value that is of another type than the field.
func (c patchCheck) fits(t *schema.Type, value ast.Expr, optional bool, path string) {
	is := c.tree.GetType(value.ID())
	if optional && is.Kind() == types.OpaqueKind && len(is.Parameters()) == 1 {
		is = is.Parameters()[0]
	}
	if want := misfit(t, is); want != "" {
		c.problem(value.ID(), "%s is %s, and this is of type %s", path, want, is)
	}
}

// misfit is what a type wants, where a value of CEL's type is surely not that; "" where
// it may be.
func misfit(t *schema.Type, is *types.Type) string {
	if t == nil || is == nil {
		return ""
	}
	compound := slices.Contains([]types.Kind{types.ListKind, types.MapKind, types.StructKind}, is.Kind())
	number := slices.Contains([]types.Kind{types.IntKind, types.UintKind, types.DoubleKind}, is.Kind())
	scalar := number || is.Kind() == types.BoolKind || is.Kind() == types.StringKind
	switch t.Kind {
	case schema.Bool:
		if compound || scalar && is.Kind() != types.BoolKind {
			return "a bool"
		}
	case schema.Int, schema.Number:
		if compound || scalar && !number {
			return "a number"
		}
	case schema.String:
		if compound || is.Kind() == types.BoolKind || number && t.Format == schema.AnyText {
			return "a string"
		}
	case schema.IntOrString:
		if compound || is.Kind() == types.BoolKind {
			return "a number or a string"
		}
	case schema.List:
		if scalar || is.Kind() == types.MapKind || is.Kind() == types.StructKind {
			return "a list"
		}
		if is.Kind() == types.ListKind {
			return within("a list, each of which is ", misfit(t.Elem, is.Parameters()[0]))
		}
	case schema.Map:
		if scalar || is.Kind() == types.ListKind {
			return "a map"
		}
		if is.Kind() == types.MapKind {
			return within("a map, each value of which is ", misfit(t.Elem, is.Parameters()[1]))
		}
	case schema.Object:
		if scalar || is.Kind() == types.ListKind {
			return "an object"
		}
	}
	return ""
}

func within(what, want string) string {
	if want == "" {
		return ""
	}
	return what + want
}

// operation looks at JSONPatch{op, path, from, value}, as far as it is constant.
func (c patchCheck) operation(e ast.Expr) {
	fields := map[string]ast.Expr{}
	for _, entry := range e.AsStruct().Fields() {
		fields[entry.AsStructField().Name()] = entry.AsStructField().Value()
	}
	op, whole := constantText(fields["op"])
	if whole && !slices.Contains([]string{"add", "remove", "replace", "move", "copy", "test"}, op) {
		c.problem(fields["op"].ID(), "op is one of add, remove, replace, move, copy and test")
		return
	}
	if _, has := fields["from"]; whole && !has && (op == "move" || op == "copy") {
		c.problem(e.ID(), "%s wants a from", op)
	}
	c.pointer(fields["from"])
	t, known := c.pointer(fields["path"])
	if value := fields["value"]; known && value != nil && (op == "add" || op == "replace") {
		path, _ := constantText(fields["path"])
		c.fits(t, value, false, path)
	}
}

// pointer follows a path into the type of the object. It is known when all of it is.
func (c patchCheck) pointer(e ast.Expr) (t *schema.Type, known bool) {
	text, whole := constantText(e)
	if text == "" || c.root == nil {
		return c.root, whole && c.root != nil
	}
	if !strings.HasPrefix(text, "/") {
		c.problem(e.ID(), "a path begins with /")
		return nil, false
	}
	parts := strings.Split(text[1:], "/")
	if !whole {
		parts = parts[:len(parts)-1] // whose end is not known
	}
	t = c.root
	var path []string
	for _, part := range parts {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch {
		case t == nil, t.Kind == schema.Any:
			return nil, false
		case t.Kind == schema.List:
			if _, err := strconv.Atoi(part); err != nil && part != "-" {
				c.problem(e.ID(), "%s is a list: its elements are a number or -, not %s", strings.Join(path, "."), part)
				return nil, false
			}
			t = t.Elem
		case t.Kind == schema.Map:
			t = t.Elem
		case t.Kind == schema.Object:
			if t, known = c.field(t, path, part, e.ID()); !known {
				return nil, false
			}
		default:
			c.problem(e.ID(), "%s has no fields", strings.Join(path, "."))
			return nil, false
		}
		path = append(path, part)
	}
	c.out.Hits = append(c.out.Hits, c.placeOf(e.ID()))
	return t, whole
}

// constantText is a text that is written out, or the beginning of one to which
// something is added. whole tells which of them.
func constantText(e ast.Expr) (text string, whole bool) {
	switch {
	case e == nil:
		return "", false
	case e.Kind() == ast.LiteralKind:
		text, whole = e.AsLiteral().Value().(string)
		return text, whole
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "_+_":
		text, _ = constantText(e.AsCall().Args()[0])
		return text, false
	}
	return "", false
}
