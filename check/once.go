package check

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/vap"
)

// tellOnce keeps what is true of a policy, and not of one of the objects that it was
// made into, at the first of these alone. Params of a built-in kind are the policy's, and
// what an expression of its author reads is where he wrote it.
func tellOnce(results []*Result) {
	told := map[telling]bool{}
	first := map[reading]*Object{}
	for _, r := range results {
		if !r.Object.Generated() {
			continue
		}
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
			switch f.Code {
			case diag.BuiltinParamKind:
				policies := madeFrom(r.Object)
				known := len(policies) > 0
				for _, m := range policies {
					this := telling{m.File, m.Policy, f.Message}
					known = known && told[this]
					told[this] = true
				}
				return known
			case diag.UndefinedField, diag.UnguardedField:
				this := reading{f.Pos, f.Code, f.Severity, f.Release}
				if first[this] == nil {
					first[this] = r.Object
				}
				return first[this] != r.Object
			}
			return false
		})
	}
}

// A reading is what has been said of what an expression reads.
type reading struct {
	at       diag.Pos
	code     diag.Code
	severity diag.Severity
	release  cel.Release
}

// A telling is what has been said of a policy of a file.
type telling struct{ file, policy, message string }

// madeFrom are the rules that an object was made from.
func madeFrom(o *Object) []vap.TranslatedMember {
	if o.Policy == nil {
		return nil
	}
	t, ok, err := vap.TranslationOf(o.Policy.Annotations)
	if !ok || err != nil {
		return nil
	}
	return t.Members
}
