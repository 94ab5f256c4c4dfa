package pack

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// declared adds the unit's variables to the draft, and is the unit with the names
// that they have there. Rules share a variable that they name alike and mean
// alike; what they name alike and mean otherwise is renamed.
func (u Unit) declared(d *vap.Draft) Unit {
	u.Variables = slices.Clone(u.Variables)
	for i := range u.Variables {
		v := u.Variables[i] // its expression is in the draft's names already
		k := slices.IndexFunc(d.Variables, func(w vap.Variable) bool { return w.Name == v.Name })
		switch {
		case k < 0:
		case cel.Equal(d.Variables[k].Expr, v.Expr):
			continue
		default:
			fresh := native.NameByRule(v.Name, u.Rule.Origin, slices.Concat(d.Variables, u.Variables))
			u = u.renamed(v.Name, fresh)
			v.Name = fresh
		}
		d.Variables = append(d.Variables, v)
	}
	return u
}
