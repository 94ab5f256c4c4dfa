package read

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// An Operand is what an expression of the source, or a value that may hold
// variables, gives: as far as it is known when compiling. Exactly one form is
// set: a literal, a place in the request, a sequence, a choice, a selection of
// several, or an error.
type Operand struct {
	Form form
	Lit  any // nil, bool, float64, int64, string, []any, map[string]any
	V    Place
	S    Sequence
	// of a choice: then where c holds, otherwise els
	C         cel.Bool
	Then, Els *Operand
	branches  int // of a choice, in all
	size      int // of a choice and a selection: how many operands it is made of, in all
	Multi     []Operand
	Keys      []string // of a hash, one per multi
	Hint      string
	Images    *ImageGroup // of images
	known     traits      // of a place
	own       Demands     // of working it out, whatever of it is read
	// Stops is what reading this ends the walk with, which then begins again
	// knowing more; nil for most.
	Stops any
	Hard  bool // of an error: it is not about a missing key, so nothing takes it for null
}

type form int

// The forms of operands, each with the fields that it uses.
const (
	LitForm      form = iota
	PlaceForm         // v
	SequenceForm      // s
	ChoiceForm        // c, then, els
	MultiForm         // multi
	HashForm          // keys, multi
	ImagesForm        // images: a map of the images of a group
	ErrorForm         // reading it strictly is an error; softly it is null
)

// LitOf is a value of the policy.
func LitOf(v any) Operand { return Operand{Form: LitForm, Lit: v} }

// OperandAt is what stands at a place.
func OperandAt(v Place) Operand { return Operand{Form: PlaceForm, V: v} }

// SequenceOf is a list that is gone through.
func SequenceOf(s Sequence) Operand { return Operand{Form: SequenceForm, S: s} }

// TypeError is an error that stays one where a missing key would be null.
func TypeError(hint string) Operand { return Operand{Form: ErrorForm, Hint: hint, Hard: true} }

// BoolOf is an expression of ours that is a boolean.
func BoolOf(b cel.Bool) Operand {
	if known, ok := b.Const(); ok {
		return LitOf(known)
	}
	return OperandAt(PlaceOf(b.Value, &schema.Type{Kind: schema.Bool}).From(FromPredicate))
}

// IntOf is an int, without guards.
func IntOf(v cel.Value) Operand { return ValueOf(v, &schema.Type{Kind: schema.Int}) }

// StringOf is a text, without guards.
func StringOf(v cel.Value) Operand { return ValueOf(v, StringType()) }

// ValueOf is an expression of a type, without guards.
func ValueOf(expr cel.Value, typ *schema.Type) Operand { return OperandAt(PlaceOf(expr, typ)) }

// Choice is one operand where c holds, and another where it does not.
func Choice(c cel.Bool, then, els Operand) Operand {
	if v, ok := c.Const(); ok {
		if v {
			return then
		}
		return els
	}
	return Operand{Form: ChoiceForm, C: c, Then: &then, Els: &els, branches: then.cases() + els.cases(), size: then.parts() + els.parts()}
}

// SelectionOf is a list of several, or a map where there are keys. What is there twice
// counts twice: whoever goes through it comes to it twice.
func SelectionOf(form form, keys []string, of []Operand) Operand {
	out := Operand{Form: form, Keys: keys, Multi: of, size: 1}
	for _, j := range of {
		out.size += j.parts()
	}
	return out
}

// parts are how many operands j is made of.
func (j Operand) parts() int { return max(1, j.size) }

// With is the choice j between other branches.
func (j Operand) With(then, els Operand) Operand {
	return Choice(j.C, then, els).Demanding(j.own)
}

// Over applies f to every branch of a choice.
func (j Operand) Over(f func(Operand) Operand) Operand {
	if j.Form != ChoiceForm {
		return f(j).Demanding(j.own)
	}
	return j.With(j.Then.Over(f), j.Els.Over(f))
}

// Settled is j inside a context where it is known to be found.
func (j Operand) Settled() Operand {
	switch j.Form {
	case PlaceForm:
		j.V = j.V.Settled()
	case SequenceForm:
		j.S = PresentSequence{j.S}
	}
	return j
}

// traits are what is known of a value where it is there, as it was asked before: that it
// is not null; that it is neither null nor falsy.
type traits struct{ Present, truthy bool }

// Traits is what is known of j, which is there for certain.
func (j Operand) Traits() traits {
	if j.Form != PlaceForm || !j.V.Certain() {
		return traits{}
	}
	return j.known
}

// PresentNow is j inside a context where it is known to be there, and not to be null.
func (j Operand) PresentNow() Operand {
	j = j.Settled()
	j.known.Present = true
	return j
}

// TruthyNow is j inside a context where it is there and not falsy.
func (j Operand) TruthyNow() Operand {
	j = j.PresentNow()
	j.known.truthy = true
	return j
}

// Softly is j with a missing key read as null.
func (j Operand) Softly() Operand { return j.softly().Demanding(j.own) }

func (j Operand) softly() Operand {
	switch j.Form {
	case ErrorForm:
		if j.Hard {
			return j
		}
		return LitOf(nil)
	case PlaceForm:
		if j.V.Never {
			return LitOf(nil)
		}
		if v, c := j.V.Demanded(); !c.IsTrue() {
			j.V = v
			return Choice(c, j.Softly(), TypeError("value"))
		}
		guards := make([]Guard, len(j.V.Guards))
		for i, g := range j.V.Guards {
			g.Shape = true
			guards[i] = g
		}
		j.V.Guards = guards
	case SequenceForm:
		if g, ok := j.S.(Guarded); ok {
			v, c := g.V.Demanded()
			g.V, g.soft = v, true
			return Choice(c, SequenceOf(g), TypeError("value"))
		}
	case ChoiceForm:
		return j.With(j.Then.Softly(), j.Els.Softly())
	}
	return j
}

// Typ is what is known of the type.
func (j Operand) Typ() *schema.Type {
	switch j.Form {
	case PlaceForm:
		if j.V.Typ != nil {
			return j.V.Typ
		}
	case LitForm:
		switch j.Lit.(type) {
		case bool:
			return &schema.Type{Kind: schema.Bool}
		case string:
			return StringType()
		case int64:
			return &schema.Type{Kind: schema.Int}
		case float64:
			return &schema.Type{Kind: schema.Number}
		}
	case SequenceForm:
		return &schema.Type{Kind: schema.List, Elem: j.S.Elem()}
	case ChoiceForm:
		return typOfEither(*j.Then, *j.Els)
	}
	return AnyType()
}

// typOfEither is the type of a value that is one of two. Texts are quantities, or durations,
// where both are.
func typOfEither(j, k Operand) *schema.Type {
	t, u := j.Typ(), k.Typ()
	switch {
	case t.Kind != u.Kind:
		return AnyType()
	case t.Kind != schema.String || t.Format == u.Format || k.isWritten(t.Format):
		return t
	case j.isWritten(u.Format):
		return u
	}
	return StringType()
}

// isWritten tells of a literal in a format.
func (j Operand) isWritten(f schema.Format) (ok bool) {
	text, isText := j.Lit.(string)
	switch {
	case j.Form != LitForm || !isText:
	case f == schema.Quantity:
		_, ok = scalar.Quantity(text)
	case f == schema.Duration:
		_, ok = scalar.Duration(text)
	}
	return ok
}

// KindOf is the kind of a type; Any of one that is not known.
func KindOf(t *schema.Type) schema.Kind {
	if t == nil {
		return schema.Any
	}
	return t.Kind
}

// Expr is j as one CEL expression, where reading j is no error (DemandsOf); false where there
// is none.
func Expr(l *Lowering, j Operand) (cel.Value, bool) {
	switch j.Form {
	case LitForm:
		return LiteralTree(l, j.Lit)
	case PlaceForm:
		if shaped := j.V.Shaped(); !shaped.IsTrue() {
			return cel.Cond(shaped, Dyn(j.V.Expr), Dyn(cel.Null())), true
		}
		return j.V.Expr, true
	case SequenceForm:
		return j.S.List(l, true)
	case MultiForm:
		return WholeList(l, EveryPart(j))
	case ChoiceForm:
		a, ok := Expr(l, *j.Then)
		b, ok2 := Expr(l, *j.Els)
		if !ok || !ok2 {
			return cel.Value{}, false
		}
		if j.Then.Typ().Kind != j.Els.Typ().Kind {
			a, b = Dyn(a), Dyn(b)
		}
		return cel.Cond(j.C, a, b), true
	}
	return cel.Value{}, false
}

// MayBeError tells of a choice of which a branch is an error for certain.
func (j Operand) MayBeError() bool {
	return j.Form == ChoiceForm && j.Some(func(branch Operand) bool { return branch.Form == ErrorForm })
}

// Constant tells of a value that is read from nowhere: a key of what is no map.
func (j Operand) Constant() bool {
	return j.Form != ErrorForm && !j.Some(func(j Operand) bool {
		return j.Form != LitForm && j.Form != ErrorForm && !(j.Form == PlaceForm && j.V.Never)
	})
}

// LiteralTree is a literal of the policy as a CEL literal.
func LiteralTree(l *Lowering, v any) (cel.Value, bool) {
	switch v := v.(type) {
	case []any:
		out := make([]cel.Value, len(v))
		for i, item := range v {
			x, ok := LiteralTree(l, item)
			if !ok {
				return x, false
			}
			out[i] = x
		}
		return cel.List(homogeneous(v, out)...), true
	case map[string]any:
		var out []cel.Entry
		for _, k := range SortedKeys(v) {
			x, ok := LiteralTree(l, v[k])
			if !ok {
				return x, false
			}
			out = append(out, cel.Entry{Key: cel.String(k), Value: Dyn(x)})
		}
		return cel.Map(out...), true
	case float64:
		return NumberOf(v), true
	}
	return Literal(v), true
}

// NumberOf is a number as a CEL literal, an integer where it is one.
func NumberOf(f float64) cel.Value {
	if f == float64(int64(f)) {
		return cel.Int(int64(f))
	}
	return cel.Double(f)
}

// NumberFor is a number as a literal to compare a value of a type with: of a number, to the
// type checker, it is a double.
func NumberFor(t *schema.Type, f float64) cel.Value {
	if KindOf(t) == schema.Number {
		return cel.Double(f)
	}
	return NumberOf(f)
}

// homogeneous wraps literals of mixed types in dyn, which CEL's lists want.
func homogeneous(vs []any, out []cel.Value) []cel.Value {
	kind := func(v any) schema.Kind {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			return schema.Int // as which it is written
		}
		return LitOf(v).Typ().Kind
	}
	mixed := func(v any) bool { return kind(v) != kind(vs[0]) || kind(v) == schema.Any }
	if len(vs) > 1 && slices.ContainsFunc(vs, mixed) {
		for i := range out {
			out[i] = Dyn(out[i])
		}
	}
	return out
}

// Literal is a value of the policy as an expression.
func Literal(v any) cel.Value {
	switch v := v.(type) {
	case bool:
		return cel.Lit(v).Value
	case int64:
		return cel.Int(v)
	case float64:
		return cel.Double(v)
	case string:
		return cel.String(v)
	}
	return cel.Null()
}

// An origin says where a value comes from, where that makes a difference.
type origin int

// The origins of values.
const (
	FromRequest origin = iota
	// FromConfiguration is for texts of the cluster's configuration. Unlike the request's
	// they may be patterns, or lists in the form of JSON.
	FromConfiguration
	// FromPatterns is for regular expressions that stand for such texts.
	FromPatterns
	// FromPredicate is for a boolean that is an expression of ours, which needs no == true
	// to be one for CEL.
	FromPredicate
	// FromOrdering is for a predicate that may be null, and where it is null reads as
	// false without its guards.
	FromOrdering
)

// From is v with another origin.
func (v Place) From(o origin) Place {
	v.Origin = o
	return v
}

// ConfiguredText is a text of the cluster's configuration.
func ConfiguredText(v cel.Value) Operand {
	return OperandAt(PlaceOf(v, StringType()).From(FromConfiguration))
}

// IsConfigured tells that a value is a text of the cluster's configuration.
func IsConfigured(j Operand) bool {
	return j.Form == PlaceForm && KindOf(j.Typ()) == schema.String && j.V.Origin == FromConfiguration
}

// Origin is where a value comes from, or the elements of a list.
func (j Operand) Origin() origin {
	switch j.Form {
	case PlaceForm:
		return j.V.Origin
	case SequenceForm:
		return j.S.Origin()
	case ChoiceForm:
		if j.Els.Form == ErrorForm || j.Then.Typ().Kind == j.Els.Typ().Kind {
			return j.Then.Origin()
		}
	}
	return FromRequest
}

// ElementOf is an element of a sequence, as CEL calls it.
func ElementOf(s Sequence, x cel.Value) Operand {
	return OperandAt(PlaceOf(x, s.Elem()).From(s.Origin()))
}
