package translate

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/pack"
)

// A rule about Pods and what it is expanded to read the same of a Pod and of the template of
// a controller, but that a Pod has metadata and a template may have none:
//
//	object.metadata.?labels                  of a Pod
//	object.spec.template.?metadata.?labels   of a Deployment
//
// asTemplates adds to units about Pods what they would be if a Pod's metadata might not be
// there, so that both can share an object.
func (l *lowering) asTemplates(units []pack.Unit) {
	if l.opts.Pack == PackMatch || l.rule.Expansion != "" || l.rule.Validate.CEL != nil || !l.policy.Expands(l.rule) {
		return
	}
	for i, u := range units {
		if u.Target.Parent != (schema.GVK{Version: "v1", Kind: "Pod"}) || !u.Reads("object", "metadata") && !u.Reads("oldObject", "metadata") {
			continue
		}
		one := *l
		one.gathered, one.ofTemplate = newGathered(&diag.List{}), true
		var as []pack.Unit
		if one.refusalOf(func() { as = one.withoutExcused(one.lowerTarget(u.Target)) }) != nil {
			continue
		}
		k := slices.IndexFunc(as, func(v pack.Unit) bool { return slices.Equal(v.Operations, u.Operations) })
		if k >= 0 {
			units[i].Template = &as[k]
		}
	}
}
