package match

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// CheckOverrides refuses overrides that no selector can say, and tells of those
// that Kyverno reads in two ways.
func CheckOverrides(l *read.Lowering) {
	for _, o := range native.OverridesOf(l.Policy, l.Rule) {
		l.SetPos(o.Pos)
		if slices.ContainsFunc(o.Namespaces, func(n string) bool { return scalar.IsWild(n) && !native.AnyNamespace(n) }) {
			panic(l.Unsupported("a wildcard for namespaces in an action override"))
		}
		if o.Namespaces != nil && o.NamespaceSelector != nil {
			l.Note(diag.OverrideBoth, "an action override with namespaces and a selector: Kyverno takes one or the other in one place, and both in another; here both must hold")
		}
	}
	l.SetPos(l.Rule.Pos)
}
