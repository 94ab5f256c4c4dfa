package pack

import (
	"strconv"
	"strings"

	"github.com/kvap/kvap/translate/internal/native"
)

// actionKey is everything that the unit's bindings depend on, but for its targets.
func (u Unit) actionKey() string {
	parts := []string{string(u.action())}
	for _, o := range native.OverridesOf(u.Policy, u.Rule) {
		parts = append(parts, string(o.Action))
		if o.Namespaces != nil {
			parts = append(parts, "in", strings.Join(o.Namespaces, ","))
		}
		if s := o.NamespaceSelector; s != nil {
			parts = append(parts, native.SelectorKey(native.PlainSelector(s)))
		}
	}
	return strings.Join(parts, "\x03")
}

// attributes are what a policy object and its bindings have once.
func (u Unit) attributes(o Options) string {
	parts := []string{u.failurePolicy(), u.actionKey(), strconv.FormatBool(u.Policy.EmitWarning), u.Params.Key(), u.CEL.Own()}
	if u.Policy.Namespaced() {
		parts = append(parts, "ns:"+u.Policy.Namespace)
	}
	for _, c := range u.Policy.MatchConditions {
		parts = append(parts, c.Name, c.Expression)
	}
	if o.Apart {
		parts = append(parts, u.Rule.Name)
	}
	if u.CEL.Own() != "" {
		parts = append(parts, native.MemberName(u.Policy), u.Rule.Name)
	}
	return strings.Join(parts, "\x02")
}
