package podsec

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// nonRoot must be true for every container, its own or else the pod's.
func (s *podStandard) nonRoot() cel.Bool {
	const control, field = "Running as Non-root", "securityContext.runAsNonRoot"
	set := func(v read.Place) cel.Bool { return under(v, field).Found() }
	ofPod := boolean(under(s.spec, field), false)
	own := oneError(control, field,
		func(v read.Place) cel.Bool { return boolean(under(v, field), true) },
		constantly("false"))
	either := oneError(control, field,
		func(c read.Place) cel.Bool {
			v := under(c, field)
			either, _ := v.OrElse(ofPod.Value)
			return either.AsBool()
		},
		func(c read.Place, values []string) cel.Bool {
			return cel.Or(cel.Not(set(c)), cel.Lit(scalar.AnyWild(values, "false"))) // a missing one has no value
		})
	return cel.And(s.pod(own), s.queued(either, cel.Not(ofPod)))
}

const (
	seccomp      = "Seccomp"
	seccompField = "securityContext.seccompProfile.type"
)

// profile is a type of seccomp profile that is set to what is not allowed.
func profile() finding { return text(seccomp, seccompField, "RuntimeDefault", "Localhost") }

// seccompBaseline is: no profile is set to what is not allowed.
func (s *podStandard) seccompBaseline() cel.Bool {
	return cel.And(s.pod(profile()), s.containers(profile()))
}

// seccompRestricted is: in addition to that, every container has a profile, its own
// or else the pod's. Kyverno does not ask for that while some profile is set to
// what is not allowed; so where such are excluded, it does not ask at all.
func (s *podStandard) seccompRestricted() cel.Bool {
	const holder = "securityContext.seccompProfile"
	set := func(v read.Place) cel.Bool { return under(v, holder).Found() }
	ofPod := set(s.spec)
	missing := oneError(seccomp, seccompField, set, func(read.Place, []string) cel.Bool { return cel.True() })
	profiled := []cel.Bool{s.onWindows(), ofPod}
	if len(s.of(seccomp, true)) > 0 { // some that are set may be excluded
		profiled = append(profiled, s.someContainer(func(c read.Place) cel.Bool { return cel.Not(profile().holds(c, nil)) }))
	}
	return cel.Or(append(profiled, s.queued(missing, cel.True()))...) // active behind !ofPod; the baseline check sees to what is set
}

// queued is: no container has the finding but for what exclusions take out. Those without
// images are about the pod, but the container that stands in for its containers has an
// error as well while the pod sets nothing that a container can do with (active), and each
// takes out one error of the pod's containers (not of the init containers, whose field is
// another). Beside exclusions by image it matters which one that is.
func (s *podStandard) queued(f finding, active cel.Bool) cel.Bool {
	steps := s.steps(f)
	first := slices.IndexFunc(steps, isStandIn)
	if first < 0 {
		return s.containers(f)
	}
	others := s.containersIn(containerLists()[1:], f)
	if slices.ContainsFunc(steps, func(e exclusion) bool { return s.total(f, e) }) {
		return others
	}
	if slices.ContainsFunc(steps, func(e exclusion) bool { return !isStandIn(e) }) {
		s.l.SetPos(steps[first].Pos)
		panic(s.l.Refuse(diag.NoExpression, "an exclusion of %s without images, beside others, has no native form", f.control))
	}
	list := s.list("containers")
	wrong := s.l.Binders.Filter(list.Expr, "container", func(x cel.Value) cel.Bool { return cel.Not(f.holds(read.PlaceOf(x, list.Elem()), nil)) })
	taken := cel.Int(0)
	for i, e := range steps {
		one := cel.Int(1)
		if !e.when.IsTrue() {
			one = cel.Cond(e.when, one, cel.Int(0))
		}
		if taken = taken.Plus(one); i == 0 {
			taken = one
		}
	}
	left := wrong.Size().Compare(cel.LessEqual, taken)
	return cel.And(cel.CondBool(active, left, wrong.Size().Eq(cel.Int(0))), others)
}

// steps are the exclusions about the pod's containers, in order.
func (s *podStandard) steps(f finding) []exclusion {
	var out []exclusion
	for _, e := range s.exclusions {
		if e.ControlName == f.control && e.names("spec.containers[*]."+f.field) {
			out = append(out, e)
		}
	}
	return out
}

func isStandIn(e exclusion) bool { return len(e.Images) == 0 }

// total tells whether the exclusion takes out the errors of every container.
func (s *podStandard) total(f finding, e exclusion) bool {
	c := read.PlaceOf(cel.Ident("container"), s.list("containers").Elem())
	return !isStandIn(e) && f.covered(c, e.forContainer(c)).IsTrue()
}
