package translate

import (
	"slices"
	"strconv"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// let is a composed variable of the unit at hand with the value. An expression
// has one variable, however often it is asked for; a name that stands for another
// expression gets a number.
func (l *lowering) let(name string, expr cel.Value) cel.Value {
	var names []string
	for _, v := range l.variables {
		if cel.Equal(v.expr, expr) {
			return variableNamed(v.name)
		}
		names = append(names, v.name)
	}
	v := variable{pos: l.pos, name: freshName(name, names), expr: expr}
	l.variables = append(l.variables, v)
	return variableNamed(v.name)
}

// defined is what a variable that the walk has made stands for.
func (l *lowering) defined(name string) (cel.Value, bool) {
	i := slices.IndexFunc(l.variables, func(v variable) bool { return v.name == name })
	if i < 0 {
		return cel.Value{}, false
	}
	return l.variables[i].expr, true
}

func variableNamed(name string) cel.Value { return cel.Ident("variables").Field(name) }

// freshName is name, with a number where it is taken.
func freshName(name string, taken []string) string {
	fresh := name
	for i := 2; slices.Contains(taken, fresh); i++ {
		fresh = name + strconv.Itoa(i)
	}
	return fresh
}

// declared adds the unit's variables to the draft, and is the unit with the names
// that they have there. Rules share a variable that they name alike and mean
// alike; what they name alike and mean otherwise is renamed.
func (u unit) declared(d *vap.Draft) unit {
	u.variables = slices.Clone(u.variables)
	for i := range u.variables {
		v := u.variables[i] // its expression is in the draft's names already
		k := slices.IndexFunc(d.Variables, func(w vap.Variable) bool { return w.Name == v.name })
		switch {
		case k < 0:
		case cel.Equal(d.Variables[k].Expr, v.expr):
			continue
		default:
			fresh := freshName(v.name, append(namesOf(d), u.names()...))
			u = u.renamed(v.name, fresh)
			v.name = fresh
		}
		d.Variables = append(d.Variables, vap.Variable{Pos: v.pos, Name: v.name, Expr: v.expr})
	}
	return u
}

func namesOf(d *vap.Draft) []string {
	out := make([]string, len(d.Variables))
	for i, v := range d.Variables {
		out[i] = v.Name
	}
	return out
}
