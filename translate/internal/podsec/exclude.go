package podsec

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// An exclusion takes violations of a control out of the result. Kyverno finds what
// it takes out by checking a part of the pod once more: the pod without containers
// for an exclusion without images, and else the bare containers with these images.
// Each error found there takes one error of the same field from the result; digits
// in fields, such as indexes, make no difference.
type exclusion struct {
	policy.PodSecurityExclude
	when cel.Bool // the PolicyException it is from applies; true for the rule's own
}

// names tells whether the exclusion is about a field, with * for indexes.
func (e exclusion) names(field string) bool {
	return e.RestrictedField == "" || e.RestrictedField == field
}

// exceptedControls are what the exceptions of the rule exclude, where they are
// about the request.
func exceptedControls(l *read.Lowering) []exclusion {
	var out []exclusion
	for _, e := range l.Opts.Exceptions {
		if e.Invalid || len(e.PodSecurity) == 0 || !match.Excepts(l, e) {
			continue
		}
		now := l.Inside()
		if l.OfOld() { // it is about the request, also where the old object is being judged
			now.Environment = l.OfNewObject()
		}
		when := match.Covered(now, e)
		if _, constant := when.Const(); !constant {
			when = read.Let(l, "excepted", when.Value).AsBool()
		}
		for _, x := range e.PodSecurity {
			if !when.IsFalse() {
				out = append(out, exclusion{x, when})
			}
		}
	}
	return out
}

// of are the exclusions of a control, of pods or of containers by their images.
func (s *podStandard) of(control string, byImage bool) []exclusion {
	var out []exclusion
	for _, e := range s.exclusions {
		if e.ControlName == control && (len(e.Images) > 0) == byImage {
			out = append(out, e)
		}
	}
	return out
}

// A waiver is an exclusion for a pod or a container.
type waiver struct {
	when   cel.Bool
	values []string // which all values of an error must match; none for any
}

// A finding is one kind of error of a check: a field of the pod's spec or of a
// container, and whether it has no error but those that waivers take out.
type finding struct {
	control string
	field   string
	holds   func(v read.Place, waivers []waiver) cel.Bool
	// covers is: all values of the error match one of those given. It is only asked
	// where there is an error.
	covers func(v read.Place, values []string) cel.Bool
}

// oneError is a finding with at most one error.
func oneError(control, field string, ok func(read.Place) cel.Bool, covers func(read.Place, []string) cel.Bool) finding {
	f := finding{control: control, field: field, covers: covers}
	f.holds = func(v read.Place, waivers []waiver) cel.Bool {
		alts := []cel.Bool{ok(v)}
		for _, w := range waivers {
			alts = append(alts, f.covered(v, w))
		}
		return cel.Or(alts...)
	}
	return f
}

// covered is: the waiver takes the error out.
func (f finding) covered(v read.Place, w waiver) cel.Bool {
	if len(w.values) == 0 {
		return w.when
	}
	return cel.And(w.when, f.covers(v, w.values))
}

// errorEach is a finding with an error for each element of a list that is not ok.
// The errors differ in an index only, so that it is their number that counts: an
// exclusion takes out as many as it covers, and two that cover the same, which have no
// native form, take out another one. (An empty path or name of a sysctl, which any exclusion covers, is
// nothing that the API server lets through.)
func (s *podStandard) errorEach(control, list, last string, ok func(read.Place) cel.Bool, covers func(read.Place, []string) cel.Bool) finding {
	one := oneError(control, "", ok, covers)
	holds := func(v read.Place, waivers []waiver) cel.Bool {
		items := orEmptyList(under(v, list))
		hint := read.Singular(list[strings.LastIndex(list, ".")+1:])
		var all []cel.Bool
		var some []waiver
		for _, w := range waivers {
			if len(w.values) == 0 {
				all = append(all, w.when)
			} else {
				some = append(some, w)
			}
		}
		if overlap(some) {
			panic(s.l.Refuse(diag.NoExpression, "two exclusions of %s that may be about the same value have no native form", control))
		}
		every := s.each(items, hint, func(x read.Place) cel.Bool { return one.holds(x, some) })
		return cel.Or(append(all, every)...)
	}
	return finding{control: control, field: list + "[*]." + last, holds: holds}
}

// overlap tells whether two of the waivers may cover the same error, as of two wildcards
// nobody asks.
func overlap(waivers []waiver) bool {
	meet := func(v, w string) bool {
		return scalar.WildMatch(v, w) || scalar.WildMatch(w, v) || scalar.IsWild(v) && scalar.IsWild(w)
	}
	for i, w := range waivers {
		for _, x := range waivers[:i] {
			if slices.ContainsFunc(w.values, func(v string) bool { return slices.ContainsFunc(x.values, func(u string) bool { return meet(v, u) }) }) {
				return true
			}
		}
	}
	return false
}

// constantly is the covers of an error whose value is always the same.
func constantly(value string) func(read.Place, []string) cel.Bool {
	return func(_ read.Place, values []string) cel.Bool { return cel.Lit(scalar.AnyWild(values, value)) }
}

// pod is: the finding is none of the pod's spec.
func (s *podStandard) pod(f finding) cel.Bool {
	var waivers []waiver
	for _, e := range s.of(f.control, false) {
		if e.names("spec." + f.field) {
			waivers = append(waivers, waiver{e.when, e.Values})
		}
	}
	return f.holds(s.spec, waivers)
}

// waivers are the exclusions for a finding in a container of a list.
func (s *podStandard) waivers(f finding, list string, c read.Place) []waiver {
	var out []waiver
	for _, e := range s.of(f.control, true) {
		if e.names("spec." + list + "[*]." + f.field) {
			out = append(out, e.forContainer(c))
		}
	}
	return out
}

// forContainer is what the exclusion takes out of a container's errors.
func (e exclusion) forContainer(c read.Place) waiver {
	return waiver{cel.And(e.when, hasImage(c, e.Images)), e.Values}
}

// hasImage is: the image, as written, matches.
func hasImage(c read.Place, images []string) cel.Bool {
	return c.Field("image").Soft(scalar.AnyWild(images, ""), func(x cel.Value) cel.Bool { return native.OneOfTexts(x, images) })
}

// excludedVolume is: the volume's type, which is no value but the field's name, is
// excluded.
func (s *podStandard) excludedVolume(control string, volume read.Place) cel.Bool {
	var alts []cel.Bool
	for _, e := range s.of(control, false) {
		field, isVolume := strings.CutPrefix(e.RestrictedField, "spec.volumes[*].")
		switch {
		case e.RestrictedField == "":
			alts = append(alts, e.when)
		case isVolume && field == "unknown":
			s.l.SetPos(e.Pos)
			panic(s.l.Refuse(diag.NoExpression, "the restricted field %s, which stands for volumes of every unknown type, has no native form", e.RestrictedField))
		case isVolume && field != "name" && !strings.Contains(field, "."):
			alts = append(alts, cel.And(e.when, volume.Field(field).Found()))
		}
	}
	return cel.Or(alts...)
}
