package podsec

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/read"
)

// containerLists are the lists of a pod's containers.
func containerLists() []string {
	return []string{"containers", "initContainers", "ephemeralContainers"}
}

// list is a list of the pod's spec, empty where it is missing.
func (s *podStandard) list(name string) read.Place { return orEmptyList(s.spec.Field(name)) }

func orEmptyList(v read.Place) read.Place {
	if v.Never {
		return read.PlaceOf(cel.List(), v.Typ)
	}
	return read.PlaceOf(read.ListOf{V: v}.Source(false), v.Typ)
}

// allContainers is the pod's containers, whichever list they are in.
func (s *podStandard) allContainers() read.Place {
	return read.PlaceOf(s.all, s.list("containers").Typ)
}

// joined is the containers of some lists.
func (s *podStandard) joined(names []string) read.Place {
	switch len(names) {
	case 1:
		return s.list(names[0])
	case len(containerLists()):
		return s.allContainers()
	}
	first, second := s.list(names[0]), s.list(names[1])
	name := strings.TrimSuffix(names[0], "Containers") + "And" + strings.ToUpper(names[1][:1]) + names[1][1:]
	return read.PlaceOf(read.Let(s.l, ofOld(s.l, name), first.Expr.Plus(read.Dyn(second.Expr))), first.Typ)
}

// each is: ok of every element.
func (s *podStandard) each(list read.Place, hint string, ok func(read.Place) cel.Bool) cel.Bool {
	return s.l.Binders.All(list.Expr, hint, func(x cel.Value) cel.Bool { return ok(read.PlaceOf(x, list.Elem())) })
}

// containers is: the findings are none of any container.
func (s *podStandard) containers(fs ...finding) cel.Bool {
	return s.containersIn(containerLists(), fs...)
}

// containersIn is: the findings are none of any container of these lists. Lists
// with the same exclusions are gone through as one.
func (s *podStandard) containersIn(lists []string, fs ...finding) cel.Bool {
	groups := map[string][]string{}
	var order []string
	for _, list := range lists {
		about := s.excludedIn(list, fs)
		if groups[about] == nil {
			order = append(order, about)
		}
		groups[about] = append(groups[about], list)
	}
	var conds []cel.Bool
	for _, about := range order {
		conds = append(conds, s.each(s.joined(groups[about]), "container", func(c read.Place) cel.Bool {
			all := make([]cel.Bool, len(fs))
			for i, f := range fs {
				all[i] = f.holds(c, s.waivers(f, groups[about][0], c))
			}
			return cel.And(all...)
		}))
	}
	return cel.And(conds...)
}

// excludedIn tells the exclusions of one list from those of others.
func (s *podStandard) excludedIn(list string, fs []finding) string {
	var b strings.Builder
	for _, f := range fs {
		for _, w := range s.waivers(f, list, read.PlaceOf(cel.Ident("container"), read.AnyType())) {
			b.WriteString(w.when.String() + "\x00" + strings.Join(w.values, "\x01") + "\x02")
		}
		b.WriteString("\x03")
	}
	return b.String()
}

func (s *podStandard) someContainer(p func(read.Place) cel.Bool) cel.Bool {
	list := s.allContainers()
	return s.l.Binders.Exists(list.Expr, "container", func(x cel.Value) cel.Bool { return p(read.PlaceOf(x, list.Elem())) })
}
