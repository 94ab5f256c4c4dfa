package rule

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/read"
)

// A rule about Pods and what it is expanded to read the same of a Pod and of the template of
// a controller, but that a Pod has metadata and a template may have none:
//
//	object.metadata.?labels                  of a Pod
//	object.spec.template.?metadata.?labels   of a Deployment
//
// asTemplates adds to units about Pods what they would be if a Pod's metadata might not be
// there, so that both can share an object.
func asTemplates(l *read.Lowering, units []pack.Unit) {
	if l.Opts.Pack == api.PackMatch || l.Rule.Expansion != "" || l.Rule.Validate.CEL != nil || !l.Policy.Expands(l.Rule) {
		return
	}
	for i, u := range units {
		if u.Target.Parent != (schema.GVK{Version: "v1", Kind: "Pod"}) || !u.Reads("object", "metadata") && !u.Reads("oldObject", "metadata") {
			continue
		}
		one := *l
		one.Notes, one.Gathered, one.OfTemplate = &diag.List{}, read.NewGathered(), true
		var as []pack.Unit
		if RefusalOf(&one, func() { as = withoutExcused(&one, lowerTarget(&one, u.Target)) }) != nil {
			continue
		}
		k := slices.IndexFunc(as, func(v pack.Unit) bool { return slices.Equal(v.Operations, u.Operations) })
		if k >= 0 {
			units[i].Template = &as[k]
		}
	}
}
