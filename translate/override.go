package translate

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/native"
)

// checkOverrides refuses overrides that no selector can say, and tells of those
// that Kyverno reads in two ways.
func (l *lowering) checkOverrides() {
	overrides := native.OverridesOf(l.policy, l.rule)
	for _, o := range overrides {
		l.setPos(o.Pos)
		if o.NamespaceSelector != nil && native.WildOverrides(overrides) {
			panic(l.unsupported("a selector in an action override, while a wildcard names namespaces in one,"))
		}
		if o.Namespaces != nil && o.NamespaceSelector != nil {
			l.note(diag.OverrideBoth, "an action override with namespaces and a selector: Kyverno takes one or the other in one place, and both in another; here both must hold")
		}
	}
	l.setPos(l.rule.Pos)
}
