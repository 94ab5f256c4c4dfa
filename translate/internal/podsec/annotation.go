package podsec

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/native"
)

// appArmorAnnotations are those of all containers, whether the pod has them or not. An
// exclusion of the control without images leaves out all of them: the containers are
// checked bare, without the pod's annotations.
func (s *podStandard) appArmorAnnotations(control string) cel.Bool {
	var alts []cel.Bool
	for _, e := range s.of(control, false) {
		switch {
		case e.RestrictedField == "":
			alts = append(alts, e.when)
		case strings.HasPrefix(e.RestrictedField, "metadata.annotations["):
			s.l.SetPos(e.Pos)
			panic(s.l.Refuse(diag.NoExpression, "an exclusion of some annotations of %s has no native form", control))
		}
	}
	annotations := s.meta.Field("annotations")
	every := func(keys cel.Value) cel.Bool {
		return s.l.Binders.All(keys, "key", func(k cel.Value) cel.Bool {
			return cel.Or(cel.Not(k.StartsWith(cel.String("container.apparmor.security.beta.kubernetes.io/"))),
				native.OneOfTexts(annotations.Expr.Index(k), []string{"", "runtime/default", "localhost/*"}))
		})
	}
	return cel.Or(append(alts, annotations.Soft(true, every))...)
}
