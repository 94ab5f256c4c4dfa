package check

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/vap"
)

// tellOnce keeps what is true of a policy, and not of one of the objects that it was
// made into, at the first of these alone. Params of a built-in kind are the policy's.
func tellOnce(results []*Result) {
	told := map[telling]bool{}
	for _, r := range results {
		policies := madeFrom(r.Object)
		if len(policies) == 0 {
			continue // written by hand
		}
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool {
			if f.Code != diag.BuiltinParamKind {
				return false
			}
			known := true
			for _, m := range policies {
				this := telling{m.File, m.Policy, f.Message}
				known = known && told[this]
				told[this] = true
			}
			return known
		})
	}
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
