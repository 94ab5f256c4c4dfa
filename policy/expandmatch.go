package policy

import (
	"slices"
	"strings"
)

// block gives a match or exclude block the kinds of the controllers. For CronJob
// all filters get them, for the other controllers only those that name Pod. The
// rest of an any upstream stays as it is, to match what it did; but the rule is
// only evaluated for its controllers, so here it is cut down to these, lest it is
// taken for a rule about others.
func (x expansion) block(n *Node, what string, controllers []string) *Node {
	for _, form := range []string{"any", "all"} {
		list := n.Get(form)
		if list == nil || len(list.Items) == 0 {
			continue
		}
		copied := *list
		copied.Items = nil
		for _, filter := range list.Items {
			switch {
			case x.name == "autogen-cronjob" || podFilter(filter):
				filter = withControllers(filter, controllers)
			case form == "any":
				filter = narrowed(filter, controllers)
			}
			if filter != nil {
				copied.Items = append(copied.Items, filter)
			}
		}
		if len(copied.Items) == 0 {
			// An empty list would let another form of the block count. An empty
			// filter never matches.
			copied.Items = []*Node{{Kind: Map, Pos: list.Pos}}
		}
		return n.with(form, &copied)
	}
	if kinds := n.Get("resources").Get("kinds"); what == "exclude" && (kinds == nil || len(kinds.Items) == 0) {
		return n
	}
	return withControllers(n, controllers)
}

func podFilter(filter *Node) bool {
	kinds := filter.Get("resources").Get("kinds")
	if kinds == nil {
		return false
	}
	var texts []Text
	for _, k := range kinds.Items {
		texts = append(texts, Text{Value: k.text()})
	}
	return matchesPod(texts)
}

// withControllers replaces the kinds of a filter by the controllers', with group
// and version.
func withControllers(filter *Node, controllers []string) *Node {
	var kinds []string
	for _, c := range controllers {
		kinds = append(kinds, groupVersionKind(c))
	}
	return withKinds(filter, kinds)
}

// narrowed is a filter cut down to the controllers; nil when it is for none.
func narrowed(filter *Node, controllers []string) *Node {
	old := filter.Get("resources").Get("kinds")
	var kinds []string
	if old == nil || len(old.Items) == 0 {
		for _, c := range controllers {
			kinds = append(kinds, "*/*/"+c+"/*") // with and without subresource
		}
		return withKinds(filter, kinds)
	}
	same := true
	for _, k := range old.Items {
		s, ok := ParseKind(k.text())
		if ok && slices.Contains(controllers, s.Kind) {
			kinds = append(kinds, k.text())
			continue
		}
		same = false
		if !ok || !strings.ContainsAny(s.Kind, "*?") {
			continue
		}
		for _, c := range controllers {
			if Wildcard(s.Kind, c) {
				kinds = append(kinds, KindSelector{s.Group, s.Version, c, s.Subresource}.String())
			}
		}
	}
	switch {
	case same:
		return filter
	case len(kinds) == 0:
		return nil
	}
	return withKinds(filter, kinds)
}

// withKinds replaces the kinds of a filter. They stand where the first kind stood.
func withKinds(filter *Node, texts []string) *Node {
	resources := filter.Get("resources")
	if resources == nil || resources.Kind != Map {
		resources = &Node{Kind: Map, Pos: filter.Pos}
	}
	kinds := &Node{Kind: List, Pos: resources.Pos}
	if old := resources.Get("kinds"); old != nil {
		kinds.Pos = old.Pos
		if len(old.Items) > 0 {
			kinds.Pos = old.Items[0].Pos
		}
	}
	for _, text := range texts {
		kinds.Items = append(kinds.Items, &Node{Kind: String, Pos: kinds.Pos, Str: text})
	}
	return filter.with("resources", resources.with("kinds", kinds))
}

func groupVersionKind(controller string) string {
	switch controller {
	case "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet":
		return "apps/v1/" + controller
	case "CronJob", "Job":
		return "batch/v1/" + controller
	case "ReplicationController":
		return "v1/" + controller
	}
	return controller
}
