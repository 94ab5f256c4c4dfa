package pack

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// A rule about Pods is judged of the controllers of Pods too: Kyverno writes it anew for them,
// with the path to the template in front. Where that is all that tells its forms apart, they
// are one member for each form of one object, whose trees say pod.

// A form is a rule as written, or as expanded, with the resources that it is about.
type form struct {
	rule      *policy.Rule
	resources []string
}

// forms are those that the unit stands for.
func (u Unit) forms() []form {
	if len(u.shared) == 0 {
		return []form{{rule: u.Rule}}
	}
	return u.shared
}

// name tells the rules of an object apart: forms that are one member each of it have the
// name of the rule as written.
func (u Unit) name() string {
	if u.pods {
		return u.Rule.Origin
	}
	return u.Rule.Name
}

func (u *Unit) addForm(other Unit) {
	if !other.pods {
		return
	}
	resource := other.Target.Plural()
	i := slices.IndexFunc(u.shared, func(f form) bool { return f.rule == other.Rule })
	switch {
	case i < 0:
		u.shared = append(slices.Clip(u.shared), form{other.Rule, []string{resource}})
	case !slices.Contains(u.shared[i].resources, resource):
		u.shared[i].resources = append(u.shared[i].resources, resource)
	}
}

// addMembers adds the members of units to the draft.
func addMembers(d *vap.Draft, units []Unit) {
	for _, u := range units {
		for _, f := range u.forms() {
			d.Members = append(d.Members, vap.Member{Pos: f.rule.Pos, Policy: native.MemberName(u.Policy), Rule: f.rule.Name, Origin: f.rule.Origin, Resources: f.resources})
		}
	}
}

// nameMembers gives the validations of the draft, which name units by their indexes, the
// members that these are.
func nameMembers(d *vap.Draft, units []Unit) {
	var first, count []int
	next := 0
	for _, u := range units {
		first, count = append(first, next), append(count, len(u.forms()))
		next += len(u.forms())
	}
	for i := range d.Validations {
		v := &d.Validations[i]
		unit := v.Member
		v.Member = first[unit]
		for j := 1; j < count[unit]; j++ {
			v.Also = append(v.Also, v.Member+j)
		}
	}
}

// asPods groups units whose trees say pod where the trees of others say the same, and so
// share an object with them.
func asPods(units []Unit, grouped func([]Unit) []group) []group {
	said := make([]Unit, len(units))
	for i, u := range units {
		said[i] = u.ofTemplate()
	}
	for i, u := range units {
		if u.isOfPods() {
			said[i] = u.ofPod(said)
		}
	}
	for {
		groups := grouped(said)
		alone := false
		for _, g := range groups {
			for _, lone := range g.units {
				if len(lone.shared) != 1 {
					continue
				}
				text := lone.Text()
				for i, u := range said {
					if u.pods && u.Rule == lone.shared[0].rule && u.Text() == text {
						said[i], alone = units[i], true
					}
				}
			}
		}
		if !alone {
			return groups
		}
	}
}

// isOfPods tells of a rule as written about Pods.
func (u Unit) isOfPods() bool {
	return u.Rule.Expansion == "" && u.Target.Parent == schema.GVK{Version: "v1", Kind: "Pod"} && u.CEL == nil
}

// ofTemplate is the unit of a rule that is expanded for controllers, with trees that say pod
// where they say where the template is.
func (u Unit) ofTemplate() Unit {
	keys := u.Rule.Template()
	if keys == nil || u.CEL != nil || u.Target.Subresource != "" || native.PodOf(u.Target) == nil {
		return u
	}
	out := u.rewritten(func(v cel.Value) cel.Value {
		v = v.SubstitutePath(append([]string{"object"}, keys...), cel.Ident(vap.PodName))
		return v.SubstitutePath(append([]string{"oldObject"}, keys...), cel.Ident(vap.OldPodName))
	})
	out.pods = true
	return out.withoutPodSpec()
}

// withoutPodSpec is the unit without a name for what is not deep inside a pod as it is in an
// object.
func (u Unit) withoutPodSpec() Unit {
	for _, v := range slices.Clone(u.Variables) {
		if path, ok := v.Expr.Path(); !ok || len(path) > 2 || path[0] != vap.PodName && path[0] != vap.OldPodName {
			continue
		}
		u.Variables = slices.DeleteFunc(u.Variables, func(w vap.Variable) bool { return w.Name == v.Name })
		u = u.rewritten(func(w cel.Value) cel.Value { return w.SubstituteField("variables", v.Name, v.Expr) })
	}
	return u
}

// ofPod is the unit of a rule about Pods with the trees of another form of the rule, where
// these say the same of a Pod.
func (u Unit) ofPod(others []Unit) Unit {
	says := u.Text()
	if u.Template != nil {
		says = u.Template.Text()
	}
	for _, v := range others {
		if !v.pods || v.Rule.Index != u.Rule.Index || v.Policy != u.Policy {
			continue
		}
		of := v.rewritten(func(v cel.Value) cel.Value {
			return v.Rename(vap.PodName, "object").Rename(vap.OldPodName, "oldObject")
		})
		if of.Text() != says {
			continue
		}
		u.Match, u.Pre, u.Holds, u.Exempt, u.Before, u.Variables = v.Match, v.Pre, v.Holds, v.Exempt, v.Before, v.Variables
		u.Message.Expr = v.Message.Expr
		u.Excused = u.Excused && v.Excused
		u.pods = true
		break
	}
	return u
}

// withDeletions puts the groups about deletions into those that say the same of new
// objects. Where one reads object, the other reads oldObject.
func withDeletions(groups []group) []group {
	var out, deletions []group
	for _, g := range groups {
		if g.onlyDeletes() {
			deletions = append(deletions, g)
		} else {
			out = append(out, g)
		}
	}
	for _, d := range deletions {
		i := slices.IndexFunc(out, func(g group) bool { return g.saysOfDeleted(d) })
		if i < 0 {
			out = append(out, d)
			continue
		}
		for _, t := range d.targets {
			at := out[i].placeOf(t.Target)
			out[i].targets[at].deletes = true
		}
	}
	return out
}

// saysOfDeleted tells that d says of what is deleted what the group says of what is made.
func (g group) saysOfDeleted(d group) bool {
	return len(g.units) == len(d.units) &&
		!slices.ContainsFunc(d.targets, func(t placed) bool { return g.placeOf(t.Target) < 0 }) &&
		!slices.ContainsFunc(g.targets, func(t placed) bool { return slices.Contains(t.ops, native.Connect) }) &&
		slices.EqualFunc(g.units, d.units, Unit.saysOfDeleted)
}

func (u Unit) saysOfDeleted(d Unit) bool {
	asksForUpdate := len(u.Operations) > 1 || u.Exempt.IsFalse()
	if u.CEL != nil || len(u.Conditions) > 0 || !asksForUpdate || u.Rule != d.Rule || u.attributes(Options{}) != d.attributes(Options{}) {
		return false
	}
	u.Exempt = cel.False()
	ofDeleted := u.inlined().rewritten(func(v cel.Value) cel.Value {
		return v.Rename("object", "oldObject").Rename(vap.PodName, vap.OldPodName)
	})
	return ofDeleted.Text() == d.inlined().Text()
}

// inlined is the unit with its variables written out: those of a deletion have other names.
func (u Unit) inlined() Unit {
	variables := u.Variables
	u.Variables = nil
	return u.rewritten(func(v cel.Value) cel.Value { return vap.Inlined(v, variables) })
}

// placeOf is where the group has a target; -1 where it has not.
func (g group) placeOf(t native.Target) int {
	return slices.IndexFunc(g.targets, func(p placed) bool { return p.Key() == t.Key() })
}
