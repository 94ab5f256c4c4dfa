package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// nonRoot must be true for every container, its own or else the pod's.
func (s *podStandard) nonRoot() cel.Bool {
	const control, field = "Running as Non-root", "securityContext.runAsNonRoot"
	set := func(v place) cel.Bool { return under(v, field).found() }
	ofPod := boolean(under(s.spec, field), false)
	own := oneError(control, field,
		func(v place) cel.Bool { return boolean(under(v, field), true) },
		constantly("false"))
	either := oneError(control, field,
		func(c place) cel.Bool { return under(c, field).soft(false, ofPod.Value, cel.Value.AsBool) },
		func(c place, values []string) cel.Bool {
			return cel.Or(cel.Not(set(c)), cel.Lit(scalar.AnyWild(values, "false"))) // a missing one has no value
		})
	q := queue{
		finding: either, active: cel.Not(ofPod), name: "rootContainers",
		errors: []func(place) cel.Bool{
			func(c place) cel.Bool { return cel.Not(boolean(under(c, field), true)) },
			func(c place) cel.Bool { return cel.And(cel.Not(set(c)), cel.Not(ofPod)) },
		},
	}
	return cel.And(s.pod(own), s.queued(q))
}

const (
	seccomp      = "Seccomp"
	seccompField = "securityContext.seccompProfile.type"
)

// profile is a type of seccomp profile that is set to what is not allowed.
func profile() finding { return text(seccomp, seccompField, "RuntimeDefault", "Localhost") }

// seccompBaseline is: no profile is set to what is not allowed.
func (s *podStandard) seccompBaseline() cel.Bool {
	if !s.since(19) {
		return s.seccompAnnotations(seccomp)
	}
	return cel.And(s.pod(profile()), s.containers(profile()))
}

// seccompRestricted is: in addition to that, every container has a profile, its own
// or else the pod's. Kyverno does not ask for that while some profile is set to
// what is not allowed; so where such are excluded, it does not ask at all.
func (s *podStandard) seccompRestricted() cel.Bool {
	const holder = "securityContext.seccompProfile"
	set := func(v place) cel.Bool { return under(v, holder).found() }
	ofPod := set(s.spec)
	missing := queue{
		finding: oneError(seccomp, seccompField, set, func(place, []string) cel.Bool { return cel.True() }),
		active:  cel.True(), // behind !ofPod
		name:    "unconfinedContainers",
		errors:  []func(place) cel.Bool{func(c place) cel.Bool { return cel.Not(set(c)) }},
	}
	profiled := []cel.Bool{s.onWindows(), ofPod}
	wrongs := len(s.of(seccomp, true))
	if !s.since(19) {
		wrongs += len(s.of(seccomp, false))
	}
	if wrongs > 0 { // some may be excluded
		profiled = append(profiled, s.someContainer(func(c place) cel.Bool { return cel.Not(profile().holds(c, nil)) }))
	}
	out := cel.Or(append(profiled, s.queued(missing))...)
	if s.since(19) { // the baseline check sees to what is set
		return out
	}
	wrong := queue{
		finding: profile(), active: cel.Not(ofPod), name: "wronglyConfinedContainers",
		errors: []func(place) cel.Bool{func(c place) cel.Bool { return cel.Not(profile().holds(c, nil)) }},
	}
	return cel.And(s.pod(profile()), s.queued(wrong), out)
}

// A queue is a finding of containers of which exclusions without images take out
// errors too. They are about the pod, but the container that stands in for its
// containers has an error as well while the pod sets nothing that a container can
// do with, and it takes out the first of those in the pod's containers (not the
// init containers, whose field is another). So it matters in which order the
// exclusions come, and the errors.
type queue struct {
	finding
	active cel.Bool               // the stand-in has an error
	errors []func(place) cel.Bool // those that a container has, in Kyverno's order
	name   string                 // of variables
}

// queued is: nothing is left in the queue.
func (s *podStandard) queued(q queue) cel.Bool {
	steps := s.steps(q)
	first := slices.IndexFunc(steps, isStandIn)
	if first < 0 {
		return s.containers(q.finding)
	}
	var conds []cel.Bool
	if !slices.ContainsFunc(steps, func(e exclusion) bool { return s.total(q.finding, e) }) {
		conds = append(conds, s.afterStandIns(q, steps[:first], steps[first:]))
	}
	conds = append(conds, s.containersIn(containerLists()[1:], q.finding))
	return cel.And(conds...)
}

// steps are the exclusions about the pod's containers, in order.
func (s *podStandard) steps(q queue) []exclusion {
	var out []exclusion
	for _, e := range s.exclusions {
		if e.ControlName == q.control && e.names("spec.containers[*]."+q.field) {
			out = append(out, e)
		}
	}
	return out
}

func isStandIn(e exclusion) bool { return len(e.Images) == 0 }

// total tells whether the exclusion takes out the errors of every container.
func (s *podStandard) total(f finding, e exclusion) bool {
	c := placeOf(cel.Ident("container"), s.list("containers").elem())
	return !isStandIn(e) && f.covered(c, e.forContainer(c)).IsTrue()
}

// afterStandIns is: nothing is left of the errors of the pod's containers after
// exclusions by image, and others that begin with a stand-in.
func (s *podStandard) afterStandIns(q queue, before, after []exclusion) cel.Bool {
	list := s.list("containers")
	gone := func(c place) cel.Bool {
		var alts []cel.Bool
		for _, e := range before {
			alts = append(alts, q.covered(c, e.forContainer(c)))
		}
		return cel.Or(alts...)
	}
	if !slices.ContainsFunc(after, func(e exclusion) bool { return !isStandIn(e) }) {
		left := s.which(list, "container", func(c place) cel.Bool { return cel.And(cel.Not(q.holds(c, nil)), cel.Not(gone(c))) })
		return left.Size().Compare(cel.LessEqual, q.standIns(after))
	}
	var errors cel.Value
	for _, is := range q.errors {
		errors = added(errors, s.which(list, "container", func(c place) cel.Bool { return cel.And(is(c), cel.Not(gone(c))) }))
	}
	left := placeOf(s.l.let(s.l.ofPrior(q.name), errors), list.typ)
	var taken func(place) cel.Bool // out of left
	for i, e := range after {
		so := taken
		if !isStandIn(e) {
			taken = func(c place) cel.Bool { return cel.Or(so(c), q.covered(c, e.forContainer(c))) }
			continue
		}
		if i > 0 {
			rest := s.which(left, "container", func(c place) cel.Bool { return cel.Not(so(c)) })
			left = placeOf(s.l.let(s.l.ofPrior(q.name), rest), list.typ)
		}
		first := left.expr.Index(cel.Int(0)).Field("name")
		taken = func(c place) cel.Bool { return cel.And(q.active, e.when, c.expr.Field("name").Eq(first)) }
	}
	return s.each(left, "container", taken)
}

// standIns is how many errors the stand-ins of exclusions take out.
func (q queue) standIns(es []exclusion) cel.Value {
	var always int64
	var sum cel.Value
	for _, e := range es {
		if e.when.IsTrue() {
			always++
		} else {
			sum = added(sum, cel.Cond(e.when, cel.Int(1), cel.Int(0)))
		}
	}
	if always > 0 {
		sum = added(sum, cel.Int(always))
	}
	if q.active.IsTrue() {
		return sum
	}
	return cel.Cond(q.active, sum, cel.Int(0))
}
