package celrule

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/vap"
)

// A portable expression means the same in every release from the one asked for to
// the latest: what Kyverno takes it to mean.

// lenientOptionals is the last release that takes orValue as Kyverno does.
const lenientOptionals cel.Release = 36

// Portable is an expression of the source that means the same in all releases, or
// the reason why there is none.
func Portable(v cel.Value, pos diag.Pos, variables []vap.Variable, o *api.Options, notes *diag.List) (cel.Value, *diag.Diagnostic) {
	return checkedPortable(v, v.WithoutPlainOptionals(among(variables)), pos, variables, o, notes)
}

// portableCondition is portable for what must be a boolean.
func portableCondition(b cel.Bool, pos diag.Pos, variables []vap.Variable, o *api.Options, notes *diag.List) (cel.Bool, *diag.Diagnostic) {
	out, why := checkedPortable(b.Value, b.WithoutPlainOptionals(among(variables)).Value, pos, variables, o, notes)
	return out.AsBool(), why
}

func checkedPortable(written, out cel.Value, pos diag.Pos, variables []vap.Variable, o *api.Options, notes *diag.List) (cel.Value, *diag.Diagnostic) {
	if changes := out.Changes(min(o.Release, lenientOptionals), among(variables)); len(changes) > 0 {
		d := diag.Warnf(pos, diag.ReleaseDependent, "%s means one thing before Kubernetes %s and another since; the webhook will judge this rule", changes[0].Call, changes[0].Since)
		return out, &d
	}
	if !cel.Equal(written, out) {
		noteRewritten(notes, pos, "orValue of a value that is not optional is that value; from Kubernetes 1.37 on it would be an error")
	}
	return out, nil
}

// among looks a variable up.
func among(variables []vap.Variable) func(name string) (cel.Value, bool) {
	return func(name string) (cel.Value, bool) {
		for _, v := range variables {
			if v.Name == name {
				return v.Expr, true
			}
		}
		return cel.Value{}, false
	}
}

func noteRewritten(notes *diag.List, pos diag.Pos, why string) {
	if notes != nil {
		*notes = append(*notes, diag.Notef(pos, diag.Rewritten, "this does not come out as written: %s", why))
	}
}
