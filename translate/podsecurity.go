package translate

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// podSecurity is: the object passes the Pod Security Standards at the rule's level,
// apart from what the rule and its exceptions exclude. There is one condition for
// each check, in the order of the standards: podcheck*.go has them.
func (l *lowering) podSecurity(p *policy.PodSecurity) cel.Bool {
	if l.object.form != valForm { // a deletion
		return cel.True()
	}
	l.at(p.Pos)
	s, ok := l.podStandard(p)
	if !ok {
		return l.failing(jval{hint: "pod"})
	}
	var conds []cel.Bool
	for _, c := range podChecks() {
		if s.restricted || !c.restricted {
			conds = append(conds, c.holds(s))
		}
	}
	return cel.And(conds...)
}

// A podStandard is a level of the Pod Security Standards in the version of one
// release, held against the pod in the object.
type podStandard struct {
	l          *lowering
	spec, meta val
	lists      []val // of its containers
	restricted bool
	minor      int
	exclusions []exclusion
}

// podStandard finds the pod; false where Kyverno finds none, which is an error.
func (l *lowering) podStandard(p *policy.PodSecurity) (*podStandard, bool) {
	spec, meta, ok := l.pod()
	if !ok {
		return nil, false
	}
	// Every level but baseline is checked like restricted, privileged too.
	s := &podStandard{l: l, meta: meta, restricted: p.Level != "baseline", minor: podMinor(p.Version)}
	for _, name := range containerLists() {
		s.lists = append(s.lists, orEmptyList(spec.field(name)))
	}
	s.spec = l.podSpec(spec)
	for _, e := range p.Exclude {
		s.exclusions = append(s.exclusions, exclusion{e, cel.True()})
	}
	s.exclusions = append(s.exclusions, l.exceptedControls()...)
	return s, true
}

// podMinor is the minor release of a version that the policy package has accepted.
func podMinor(version string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "v1."))
	if err != nil { // empty or latest
		return math.MaxInt
	}
	return n
}

// since tells whether the variant of a check that came with a minor release counts.
// The first variant counts always, even where it is newer than the version.
func (s *podStandard) since(minor int) bool { return s.minor >= minor }

// pod is the pod's spec and metadata in the object. Of a CronJob, the metadata are
// those of the Job: Kyverno looks for the annotations of the pod there.
func (l *lowering) pod() (spec, meta val, ok bool) {
	object := l.object.v
	switch gvk := l.target.gvk; {
	case gvk == schema.GVK{Version: "v1", Kind: "Pod"}:
		return object.field("spec"), object.field("metadata"), true
	case isPodController(gvk):
		template := object.field("spec").field("template")
		return template.field("spec"), template.field("metadata"), true
	case gvk.Group == "batch" && gvk.Kind == "CronJob":
		job := object.field("spec").field("jobTemplate")
		return under(job, "spec.template.spec"), job.field("metadata"), true
	case gvk == schema.GVK{} || l.target.guessed:
		panic(l.refuse(diag.NoExpression, "a podSecurity rule for objects whose kind is only known at run time has no native form"))
	}
	return val{}, val{}, false
}

func isPodController(gvk schema.GVK) bool {
	switch gvk.Group + "/" + gvk.Kind {
	case "apps/DaemonSet", "apps/Deployment", "apps/StatefulSet", "apps/ReplicaSet", "batch/Job", "/ReplicationController":
		return true
	}
	return false
}

// podSpec is a spec deep inside the object under a name of its own.
func (l *lowering) podSpec(v val) val {
	if l.target.gvk.Kind == "Pod" || !v.certain() {
		return v
	}
	return at(l.let(l.ofPrior("podSpec"), v.expr), v.typ)
}

// ofPrior is the name of a variable, told apart where it is about the old object.
func (l *lowering) ofPrior(name string) string {
	if !l.prior {
		return name
	}
	first := []rune(name)
	first[0] = unicode.ToUpper(first[0])
	return "old" + string(first)
}

// containerLists are the lists of a pod's containers.
func containerLists() []string {
	return []string{"containers", "initContainers", "ephemeralContainers"}
}

// allContainers is the pod's containers, whichever list they are in.
func (s *podStandard) allContainers() val {
	exprs := make([]cel.Value, len(s.lists))
	for i, list := range s.lists {
		exprs[i] = list.expr
	}
	return at(s.l.joinLists(exprs), s.lists[0].typ)
}

func orEmptyList(v val) val {
	if v.never {
		return at(cel.List(), v.typ)
	}
	return at(listOf{v: v}.source(false), v.typ)
}

// under is the place of a path of fields below v.
func under(v val, path string) val {
	for _, name := range strings.Split(path, ".") {
		v = v.field(name)
	}
	return v
}

// each is: ok of every element.
func (s *podStandard) each(list val, hint string, ok func(val) cel.Bool) cel.Bool {
	return s.l.b.all(list.expr, hint, func(x cel.Value) cel.Bool { return ok(at(x, list.elem())) })
}

// which is the elements of which keep holds.
func (s *podStandard) which(list val, hint string, keep func(val) cel.Bool) cel.Value {
	return s.l.b.filter(list.expr, hint, func(x cel.Value) cel.Bool { return keep(at(x, list.elem())) })
}

// onWindows is: the pod says that it is for Windows. Restricted checks of what
// Windows does not have let it pass from 1.25 on.
func (s *podStandard) onWindows() cel.Bool {
	if !s.since(25) {
		return cel.False()
	}
	is := under(s.spec, "os.name").soft(false, cel.String(""), func(x cel.Value) cel.Bool { return x.Eq(cel.String("windows")) })
	return s.l.let(s.l.ofPrior("windows"), is.Value).AsBool()
}
