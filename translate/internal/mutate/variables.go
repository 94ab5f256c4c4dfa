package mutate

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

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
