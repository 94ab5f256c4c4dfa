package match

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// CheckOverrides refuses overrides that no selector can say, and tells of those
// that Kyverno reads in two ways.
func CheckOverrides(l *read.Lowering) {
	overrides := native.OverridesOf(l.Policy, l.Rule)
	for _, o := range overrides {
		l.SetPos(o.Pos)
		if o.NamespaceSelector != nil && native.WildOverrides(overrides) {
			panic(l.Unsupported("a selector in an action override, while a wildcard names namespaces in one,"))
		}
		if o.Namespaces != nil && o.NamespaceSelector != nil {
			l.Note(diag.OverrideBoth, "an action override with namespaces and a selector: Kyverno takes one or the other in one place, and both in another; here both must hold")
		}
	}
	l.SetPos(l.Rule.Pos)
}
