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
	if len(u.Reaches) > 0 {
		parts = append(parts, "reaches", strings.Join(u.Reaches, ","))
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
	if s := u.NamespaceSelector; !s.IsEmpty() {
		parts = append(parts, native.SelectorKey(s))
	}
	if o.Apart {
		parts = append(parts, u.name())
	}
	if u.CEL.Own() != "" {
		parts = append(parts, native.MemberName(u.Policy), u.name())
	}
	return strings.Join(parts, "\x02")
}
