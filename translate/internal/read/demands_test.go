package read_test

import (
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/read"
)

// labels is object.metadata.labels, which may not be there, and app one of them.
func labels() (labels, app read.Place) {
	object := &schema.Type{Kind: schema.Object, Fields: map[string]*schema.Field{
		"labels": {Type: read.MapOf(read.StringType())},
	}}
	labels = read.PlaceOf(cel.Ident("object").Field("metadata"), object).Field("labels")
	return labels, labels.Field("app")
}

// TestDemands: an operand says what must hold for it to be read, and what must hold whatever of it
// is read.
func TestDemands(t *testing.T) {
	all, app := labels()
	text := read.OperandAt(app)
	sure := read.StringOf(cel.Ident("object").Field("kind"))
	c := cel.Ident("request").Field("name").Eq(cel.String("x"))
	positive := read.Demand("positive", cel.Ident("object").Field("n").Compare(cel.Greater, cel.Int(0)))
	worked := sure.Demanding(positive)
	tests := []struct {
		note             string
		j                read.Operand
		reading, anyways string
	}{
		{"a literal", read.LitOf("a"), "true", "true"},
		{"what is there", sure, "true", "true"},
		{"a label", text, "has(object.metadata.labels) && has(object.metadata.labels.app)", "true"},
		{"a label, read softly", text.Softly(), "true", "true"},
		{"what is worked out", worked, "object.n > 0", "object.n > 0"},
		{"what is worked out, read softly", worked.Softly(), "object.n > 0", "object.n > 0"},
		{"a choice", read.Choice(c, text, worked), "request.name == 'x' ? has(object.metadata.labels) && has(object.metadata.labels.app) : object.n > 0", "request.name == 'x' || object.n > 0"},
		{"a choice between errors", read.Choice(c, worked, worked), "object.n > 0", "object.n > 0"},
		{"an error in a branch", read.Choice(c, sure, read.TypeError("argument")), "request.name == 'x'", "true"},
		{"another branch of it", read.Choice(c, worked, sure).With(sure, worked), "request.name == 'x' || object.n > 0", "request.name == 'x' || object.n > 0"},
		{"several", read.SelectionOf(read.MultiForm, nil, []read.Operand{worked, text}), "object.n > 0 && has(object.metadata.labels) && has(object.metadata.labels.app)", "object.n > 0"},
		{"a list that may be missing", read.SequenceOf(read.ListOf{V: all}), "true", "true"},
		{"the list itself", read.SequenceOf(read.StrictList{ListOf: read.ListOf{V: all}}), "has(object.metadata.labels)", "true"},
		{"the keys of an argument", read.SequenceOf(read.Entries{V: all, Given: true}), "has(object.metadata.labels)", "true"},
		{"elements", read.SequenceOf(read.Concat{read.Single{J: worked}, read.ListOf{V: all}}), "object.n > 0", "true"},
		{"made of another", read.From(func(read.Operand) read.Operand { return text }, worked), "object.n > 0 && has(object.metadata.labels) && has(object.metadata.labels.app)", "object.n > 0"},
		{"where it is no error", worked.Undemanding(), "true", "true"},
	}
	l := &read.Lowering{Opts: &api.Options{}}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			d, ok := read.DemandsOf(l, tt.j)
			if got := d.All().String(); got != tt.reading || !ok {
				t.Errorf("reading it demands %s (%t), want %s", got, ok, tt.reading)
			}
			if got := tt.j.Anyway().All().String(); got != tt.anyways {
				t.Errorf("it demands %s anyway, want %s", got, tt.anyways)
			}
		})
	}
}

// Demands keep the order in which they are met, each once; the first that has a name gives it.
func TestDemandsAreJoined(t *testing.T) {
	is := func(name string) cel.Bool { return cel.Ident(name).AsBool() }
	a, b := read.Demand("", is("a")), read.Demand("second", is("b")).And(read.Demand("third", is("a")))
	if d := a.And(b); d.All().String() != "a && b" || d.Hint != "second" {
		t.Errorf("%s, %q", d.All(), d.Hint)
	}
	loading := read.DemandToLoad("entry", is("c"))
	loading.Unsure = true
	if d := a.And(loading); d.All().String() != "c && a" || !d.Unsure || d.None() || len(d.Conds) != 1 {
		t.Errorf("%+v", d)
	}
	if d := read.DemandsWhere(is("x"), a.And(read.Demand("", is("b"))), a); d.All().String() != "a && (!x || b)" {
		t.Errorf("%s", d.All())
	}
}
