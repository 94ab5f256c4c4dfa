package diff

import (
	"slices"

	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/verify"
)

// A By says how two parts of the sides were found to belong together.
type By string

// The ways, the surest first.
const (
	ByName    By = "name"
	ByMatch   By = "what they match"
	ByBeing   By = "being the only ones"
	ByWhole   By = "the whole of both"
	ByNothing By = "nothing"
)

// A pairing is groups of both sides that are held against each other; one of them may have none.
type pairing struct {
	old, new []*group
	by       By
}

// pairGroups pairs groups by name; those that are left, by what they match; and one that is left of
// each side with the other. Groups that match some of the same are compared as a whole.
func pairGroups(old, new *Side, schemas *schema.Set) (out []pairing) {
	a, b := old.groups(), new.groups()
	for _, g := range a {
		if i := slices.IndexFunc(b, func(o *group) bool { return o.name == g.name }); i >= 0 {
			out = append(out, pairing{[]*group{g}, []*group{b[i]}, ByName})
		}
	}
	rest := func(list []*group, of *Side) (out []*matching) {
		for _, g := range list {
			if !slices.ContainsFunc(a, func(o *group) bool { return o.name == g.name }) || !slices.ContainsFunc(b, func(o *group) bool { return o.name == g.name }) {
				out = append(out, &matching{g, verify.NewExplorer(subjectOf(of, []*group{g}), schemas, 0).About()})
			}
		}
		return out
	}
	olds, news := rest(a, old), rest(b, new)
	if len(olds) == 1 && len(news) == 1 {
		by := ByBeing
		if olds[0].meets(news[0]) {
			by = ByMatch
		}
		return append(out, pairing{[]*group{olds[0].group}, []*group{news[0].group}, by})
	}
	for len(olds)+len(news) > 0 {
		var p pairing
		p, olds, news = connected(olds, news)
		out = append(out, p)
	}
	return out
}

// A matching is a group with the resources that it is about.
type matching struct {
	*group
	about []string
}

func (m *matching) meets(o *matching) bool {
	return slices.ContainsFunc(m.about, func(s string) bool { return slices.Contains(o.about, s) })
}

// connected are the groups that are about some resource of the first, or of one of the other side
// that is, and so on; with those that are left. Two of one side that are about the same resource are
// not held together by that alone.
func connected(olds, news []*matching) (p pairing, oldRest, newRest []*matching) {
	var in [2][]*matching
	left := [2][]*matching{olds, news}
	side := 0
	if len(olds) == 0 {
		side = 1
	}
	in[side], left[side] = left[side][:1], left[side][1:]
	for again := true; again; {
		again = false
		for side := range 2 {
			var rest []*matching
			for _, m := range left[side] {
				if slices.ContainsFunc(in[1-side], m.meets) {
					in[side], again = append(slices.Clip(in[side]), m), true
				} else {
					rest = append(rest, m)
				}
			}
			left[side] = rest
		}
	}
	for _, m := range in[0] {
		p.old = append(p.old, m.group)
	}
	for _, m := range in[1] {
		p.new = append(p.new, m.group)
	}
	switch {
	case len(p.old) == 0 || len(p.new) == 0:
		p.by = ByNothing
	case len(p.old) == 1 && len(p.new) == 1:
		p.by = ByMatch
	default:
		p.by = ByWhole
	}
	return p, left[0], left[1]
}

// A matter is what is compared: rules of the sides, whose answers are joined.
type matter struct {
	old, new []ruleName
	by       By
}

// matters pairs the rules of paired groups by name. What does not pair one to one is compared as a
// whole, but for what mutates, which is compared with what mutates.
func (p pairing) matters() (out []matter) {
	olds, oldMutates := rulesOf(p.old, p.new)
	news, newMutates := rulesOf(p.new, p.old)
	switch {
	case len(olds)+len(news) == 0:
	case len(olds) == 0 || len(news) == 0:
		out = append(out, matter{olds, news, ByNothing})
	case p.by == ByWhole:
		out = append(out, matter{olds, news, ByWhole})
	case len(olds) == 1 && len(news) == 1:
		out = append(out, matter{olds, news, p.by})
	default:
		out = append(out, byName(olds, news)...)
	}
	if len(oldMutates)+len(newMutates) > 0 {
		by := ByWhole
		if len(oldMutates) == 0 || len(newMutates) == 0 {
			by = ByNothing
		}
		out = append(out, matter{oldMutates, newMutates, by})
	}
	return out
}

// byName pairs rules of the same names, if all have one.
func byName(olds, news []ruleName) (out []matter) {
	for _, o := range olds {
		i := slices.IndexFunc(news, func(n ruleName) bool { return n.rule == o.rule })
		if i < 0 || len(olds) != len(news) {
			return []matter{{olds, news, ByWhole}}
		}
		out = append(out, matter{[]ruleName{o}, []ruleName{news[i]}, ByName})
	}
	return out
}

// rulesOf are the rules of groups, but for those that are not judged on the other side.
func rulesOf(groups, others []*group) (validate, mutate []ruleName) {
	left := func(rule string) bool {
		return slices.ContainsFunc(others, func(o *group) bool {
			return slices.ContainsFunc(o.left, func(l Left) bool { return l.Rule == rule })
		})
	}
	for _, g := range groups {
		for _, r := range g.rules {
			switch {
			case r == mutations:
				mutate = append(mutate, ruleName{g.name, r})
			case !left(r):
				validate = append(validate, ruleName{g.name, r})
			}
		}
	}
	return validate, mutate
}

// Unmatched are names of rules that have no counterpart of their name, where wholes are compared.
func (m matter) unmatched() (olds, news []string) {
	without := func(list, other []ruleName) (out []string) {
		for _, r := range list {
			if !slices.ContainsFunc(other, func(o ruleName) bool { return o.rule == r.rule }) {
				out = append(out, r.rule)
			}
		}
		return out
	}
	return without(m.old, m.new), without(m.new, m.old)
}
