package podsec

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Holds is: the object passes the Pod Security Standards at the rule's level,
// apart from what the rule and its exceptions exclude. The names of the controls
// that it violates are a variable: the message tells them, and the rule holds
// where there are none. check.go has the checks.
func Holds(l *read.Lowering, p *policy.PodSecurity) partial.Bool {
	if l.Object.Form != read.PlaceForm { // a deletion
		return partial.Sure(cel.True())
	}
	l.SetPos(p.Pos)
	s, ok := atLevel(l, p)
	if !ok {
		return partial.Error("pod")
	}
	holds := map[string]cel.Bool{}
	var controls []string
	for _, c := range podChecks() {
		if c.restricted && !s.restricted {
			continue
		}
		before, twice := holds[c.control]
		if !twice {
			controls, before = append(controls, c.control), cel.True()
		}
		holds[c.control] = cel.And(before, c.holds(s))
	}
	var names []cel.Value
	for _, control := range controls {
		if is := holds[control].Simplify(); !is.IsTrue() {
			names = append(names, cel.Cond(is, cel.String(""), cel.String(control)))
		}
	}
	violated := l.Binders.Filter(cel.List(names...), "control", func(c cel.Value) cel.Bool { return c.Ne(cel.String("")) })
	return partial.Sure(read.Let(l, ofOld(l, violations), violated).Size().Eq(cel.Int(0)))
}

// violations is the variable with the names of the controls that a pod violates.
const violations = "violations"

// NameControls makes the message of a Holds rule say which controls are
// violated. Kyverno never shows the rule's own message; here it comes first.
func NameControls(l *read.Lowering, u *pack.Unit) {
	p := l.Rule.Validate.PodSecurity
	if _, made := read.Defined(l, violations); p == nil || !made {
		return
	}
	if strings.TrimSpace(l.Rule.Validate.Message.Value) == "" {
		u.Message.Text = `violates PodSecurity "` + p.Level + ":" + cmp.Or(p.Version, "latest") + `"`
	}
	u.Message = u.Message.Naming(native.VariableNamed(violations))
}

// A atLevel is a level of the Pod Security Standards in the version of one
// release, held against the pod in the object.
type podStandard struct {
	l          *read.Lowering
	spec, meta read.Place
	all        cel.Value // its containers, whichever list they are in
	restricted bool
	minor      int
	exclusions []exclusion
}

// atLevel finds the pod; false where Kyverno finds none, which is an error.
func atLevel(l *read.Lowering, p *policy.PodSecurity) (*podStandard, bool) {
	spec, meta, ok := pod(l)
	if !ok {
		return nil, false
	}
	// Every level but baseline is checked like restricted, privileged too.
	if podMinor(p.Version) < 19 {
		panic(l.Refuse(diag.NoExpression, "the Pod Security Standards of a release before 1.19, in which seccomp was in annotations, have no native form"))
	}
	s := &podStandard{l: l, meta: meta, restricted: p.Level != "baseline", minor: podMinor(p.Version)}
	var lists []cel.Value
	for _, name := range containerLists() {
		lists = append(lists, orEmptyList(spec.Field(name)).Expr)
	}
	s.all = query.JoinLists(l, lists)
	s.spec = podSpec(l, spec)
	for _, e := range p.Exclude {
		s.exclusions = append(s.exclusions, exclusion{e, cel.True()})
	}
	s.exclusions = append(s.exclusions, exceptedControls(l)...)
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
func pod(l *read.Lowering) (spec, meta read.Place, ok bool) {
	object := podOwner(l)
	switch gvk := l.Target.GVK; {
	case gvk == schema.GVK{Version: "v1", Kind: "Pod"}:
		return object.Field("spec"), object.Field("metadata"), true
	case isPodController(gvk):
		template := object.Field("spec").Field("template")
		return template.Field("spec"), template.Field("metadata"), true
	case gvk.Group == "batch" && gvk.Kind == "CronJob":
		job := object.Field("spec").Field("jobTemplate")
		return under(job, "spec.template.spec"), job.Field("metadata"), true
	case gvk == schema.GVK{} || l.Target.Guessed || hasPod(gvk.Kind):
		panic(l.Refuse(diag.NoExpression, "a podSecurity rule for objects of which it is not known where their pod is has no native form"))
	}
	return read.Place{}, read.Place{}, false
}

// podOwner is the object. Where a kind matches in any version, Kyverno reads all of them
// as the one that it knows, and errs on what has another shape.
func podOwner(l *read.Lowering) read.Place {
	gvk := l.Target.GVK
	if !scalar.IsWild(gvk.Version) || !hasPod(gvk.Kind) {
		return l.Object.V
	}
	for _, r := range l.Opts.Schemas.Resources(gvk.Group, gvk.Version, gvk.Kind) {
		known := l.Target
		known.Type = l.Opts.Schemas.Type(r.GVK)
		if known.Type != nil && !r.Guessed {
			return read.PlaceOf(l.Object.V.Expr, read.ObjectType(l, known))
		}
	}
	return l.Object.V
}

// hasPod tells whether Kyverno looks for a pod in objects of a kind, whatever the
// group.
func hasPod(kind string) bool {
	switch kind {
	case "Pod", "DaemonSet", "Deployment", "StatefulSet", "ReplicaSet", "Job", "ReplicationController", "CronJob":
		return true
	}
	return false
}

func isPodController(gvk schema.GVK) bool {
	switch gvk.Group + "/" + gvk.Kind {
	case "apps/DaemonSet", "apps/Deployment", "apps/StatefulSet", "apps/ReplicaSet", "batch/Job", "/ReplicationController":
		return true
	}
	return false
}

// podSpec is a spec deep inside the object under a name of its own.
func podSpec(l *read.Lowering, v read.Place) read.Place {
	if l.Target.GVK.Kind == "Pod" || !v.Certain() {
		return v
	}
	return read.PlaceOf(read.Let(l, ofOld(l, "podSpec"), v.Expr), v.Typ)
}

// ofOld is the name of a variable, told apart where it is about the old object.
func ofOld(l *read.Lowering, name string) string {
	if !l.OfOld() {
		return name
	}
	first := []rune(name)
	first[0] = unicode.ToUpper(first[0])
	return "old" + string(first)
}

// under is the place of a path of fields below v.
func under(v read.Place, path string) read.Place {
	for _, name := range strings.Split(path, ".") {
		v = v.Field(name)
	}
	return v
}

// onWindows is: the pod says that it is for Windows. Restricted checks of what
// Windows does not have let it pass from 1.25 on.
func (s *podStandard) onWindows() cel.Bool {
	if !s.since(25) {
		return cel.False()
	}
	is := under(s.spec, "os.name").Soft(false, func(x cel.Value) cel.Bool { return x.Eq(cel.String("windows")) })
	return read.Let(s.l, ofOld(s.l, "windows"), is.Value).AsBool()
}

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
