package translate

import (
	"regexp"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/native"
)

// appArmorAnnotations are those of all containers, whether the pod has them or not.
func (s *podStandard) appArmorAnnotations(control string) cel.Bool {
	annotations := s.meta.field("annotations")
	waived := s.annotationWaivers(control)
	every := func(keys cel.Value) cel.Bool {
		return s.l.binders.All(keys, "key", func(k cel.Value) cel.Bool {
			value := annotations.expr.Index(k)
			alts := []cel.Bool{
				cel.Not(k.StartsWith(cel.String("container.apparmor.security.beta.kubernetes.io/"))),
				native.OneOfTexts(value, []string{"", "runtime/default", "localhost/*"}),
			}
			for _, w := range waived {
				alts = append(alts, cel.And(w.when, w.key(k), w.matches(value)))
			}
			return cel.Or(alts...)
		})
	}
	return annotations.soft(true, cel.Map(), every)
}

// seccompAnnotations are those of the pod and of its containers.
func (s *podStandard) seccompAnnotations(control string) cel.Bool {
	const podKey, prefix = "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/"
	annotations := s.meta.field("annotations")
	waived := s.annotationWaivers(control)
	allowed := func(x cel.Value, waivers func(annotationWaiver) cel.Bool) cel.Bool {
		alts := []cel.Bool{native.OneOfTexts(x, []string{"runtime/default", "docker/default", "localhost/*"})}
		for _, w := range waived {
			alts = append(alts, cel.And(w.when, waivers(w), w.matches(x)))
		}
		return cel.Or(alts...)
	}
	ofPod := annotations.field(podKey).soft(true, cel.Value{}, func(x cel.Value) cel.Bool {
		return allowed(x, func(w annotationWaiver) cel.Bool { return cel.Lit(w.is(podKey)) })
	})
	ofContainers := annotations.soft(true, cel.Value{}, func(all cel.Value) cel.Bool {
		return s.each(s.allContainers(), "container", func(c place) cel.Bool {
			key := cel.String(prefix).Plus(c.expr.Field("name"))
			return cel.Implies(key.In(all), allowed(all.Index(key), func(w annotationWaiver) cel.Bool {
				// what stands in for the containers of a pod is called fake
				return cel.And(cel.Lit(w.is(prefix+"fake")), c.expr.Field("name").Eq(cel.String("fake")))
			}))
		})
	})
	return cel.And(ofPod, ofContainers)
}

// An annotationWaiver is an exclusion for annotations. Their keys are a part of
// the field, so digits in them make no difference either.
type annotationWaiver struct {
	waiver
	pattern string // of keys, * for digits; "" for every key
}

// annotationWaivers are the exclusions without images: the containers are checked
// bare, without the pod's annotations.
func (s *podStandard) annotationWaivers(control string) []annotationWaiver {
	var out []annotationWaiver
	for _, e := range s.of(control, false) {
		w := annotationWaiver{waiver: waiver{e.when, e.Values}}
		if e.RestrictedField != "" {
			key, found := strings.CutPrefix(e.RestrictedField, "metadata.annotations[")
			key, closed := strings.CutSuffix(key, "]")
			if !found || !closed || strings.ContainsAny(key, "0123456789") {
				continue
			}
			w.pattern = key
		}
		for _, x := range out {
			if w.pattern == x.pattern && strings.Contains(w.pattern, "*") && haveCommonText(w.values, x.values) {
				s.l.setPos(e.Pos)
				panic(s.l.refuse(diag.NoExpression, "two exclusions of the same values of the restricted field %s, each of which takes out an annotation, have no native form", e.RestrictedField))
			}
		}
		out = append(out, w)
	}
	return out
}

// matches is: the annotation's value is one of those excluded.
func (w annotationWaiver) matches(value cel.Value) cel.Bool {
	if len(w.values) == 0 {
		return cel.True()
	}
	return inValues(value, w.values)
}

// is tells whether a key is meant.
func (w annotationWaiver) is(key string) bool { return w.pattern == "" || w.pattern == key }

// key is: the key is meant.
func (w annotationWaiver) key(k cel.Value) cel.Bool {
	switch {
	case w.pattern == "":
		return cel.True()
	case !strings.Contains(w.pattern, "*"):
		return k.Eq(cel.String(w.pattern))
	}
	return k.Matches("^" + strings.ReplaceAll(regexp.QuoteMeta(w.pattern), `\*`, "[0-9]+") + "$")
}
