package pack

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// With --pack match an object has the rules of many policies about one family of kinds. What a
// rule is about decides which objects it is in, and no other rule does: so one that comes or
// goes changes no object but its own.
//
//	kvap-pods-and-controllers-deny  what is asked of Pods and of the templates of their controllers alike
//	kvap-pods-deny                  what is asked of Pods alone, also where a debug container is added
//	kvap-deployments-deny           what is asked of Deployments alone
//
// New objects and updates are together. A rule that is about a part of what the object is about
// asks whether a request is that: object.kind in ['Deployment', 'StatefulSet'].

// family is the name of the kinds with which the unit's kind shares objects; empty where it
// shares none.
func (u Unit) family() string {
	switch {
	case u.Target.GVK.Group != u.Target.Group || u.Target.GVK.Version != u.Target.Version || u.CEL != nil:
		return "" // another version than the one that is stored
	case u.pods:
		return "pods-and-controllers"
	case isPod(u.Target):
		return "pods"
	}
	return ""
}

// isPod reports whether the target's objects are whole Pods.
func isPod(t native.Target) bool {
	return t.Parent == (schema.GVK{Version: "v1", Kind: "Pod"}) && (t.Subresource == "" || t.Subresource == "ephemeralcontainers")
}

// byFamily packs units of many policies.
func byFamily(units []Unit, o Options) []group {
	var out []group
	where := map[string]int{}
	for _, u := range units {
		attrs := u.attributes(o)
		for _, class := range []native.Operation{native.Create, native.Delete, native.Connect} {
			part := u
			part.Operations = slices.DeleteFunc(slices.Clone(u.Operations), func(op native.Operation) bool { return classOf(op) != class })
			if len(part.Operations) == 0 {
				continue
			}
			about := u.family()
			if about == "" {
				about = "of " + u.Target.Key()
			}
			key := about + "\x00" + string(class) + "\x00" + attrs
			i, ok := where[key]
			if !ok {
				i = len(out)
				where[key] = i
				out = append(out, group{byKind: true, family: u.family()})
			}
			out[i].add(part)
		}
	}
	for i := range out {
		out[i] = out[i].with(out[i].units)
	}
	return withoutCreatedParts(out)
}

// add adds a unit to a pack, as another form of one that says the same where there is one.
func (g *group) add(u Unit) {
	i := -1
	if g.family != "" {
		text := u.Text()
		i = slices.IndexFunc(g.units, func(v Unit) bool {
			return v.Policy == u.Policy && v.name() == u.name() && slices.Equal(v.Operations, u.Operations) && v.Text() == text
		})
	}
	if i < 0 {
		i = len(g.units)
		g.units = append(g.units, u)
	}
	g.units[i].about = append(slices.Clip(g.units[i].about), u.Target)
	g.units[i].addForm(u)
}

// ofUnits has the group be about what its units are about, and each of them ask whether a
// request is about that.
func (g *group) ofUnits() {
	g.targets, g.units = nil, slices.Clone(g.units)
	for _, u := range g.units {
		for _, t := range u.about {
			for _, op := range u.Operations {
				if i := g.placeOf(t); i < 0 || !slices.Contains(g.targets[i].ops, op) {
					g.place(t, op)
				}
			}
		}
	}
	if rest := slices.DeleteFunc(slices.Clone(g.targets), placed.neverHappens); len(rest) > 0 {
		g.targets = rest
	}
	for i, u := range g.units {
		g.units[i].asks = g.asksOf(u)
	}
}

// asksOf are the fewest questions that tell requests that the unit is about from others that
// the group is about: of the operation, of the kind, of the subresource.
func (g group) asksOf(u Unit) cel.Bool {
	type request struct{ operation, kind, subresource string }
	var mine, others []request
	for _, t := range g.targets {
		isMine := slices.ContainsFunc(u.about, func(own native.Target) bool { return own.Key() == t.Key() })
		for _, op := range t.ops {
			r := request{string(op), t.Parent.Kind, t.Subresource}
			if (placed{Target: t.Target, ops: []native.Operation{op}}).neverHappens() {
				continue
			}
			if isMine && slices.Contains(u.Operations, op) {
				mine = append(mine, r)
			} else {
				others = append(others, r)
			}
		}
	}
	root := "object"
	if classOf(u.Operations[0]) == native.Delete {
		root = "oldObject"
	}
	parts := []struct {
		of    func(request) string
		value cel.Value
	}{
		{func(r request) string { return r.subresource }, cel.Ident("request").Optional("subResource").OrValue(cel.String(""))},
		{func(r request) string { return r.kind }, cel.Ident(root).Field("kind")},
		{func(r request) string { return r.operation }, cel.Ident("request").Field("operation")},
	}
	has := func(part func(request) string, value string) bool {
		return slices.ContainsFunc(mine, func(r request) bool { return part(r) == value })
	}
	// one question after the other is left out while the rest tells them apart
	for i := 0; i < len(parts); {
		rest := slices.Delete(slices.Clone(parts), i, i+1)
		passes := func(r request) bool {
			for _, p := range rest {
				if !has(p.of, p.of(r)) {
					return false
				}
			}
			return true
		}
		if slices.ContainsFunc(others, passes) {
			i++
		} else {
			parts = rest
		}
	}
	var out []cel.Bool
	for _, p := range slices.Backward(parts) {
		var values []string
		for _, r := range mine {
			if v := p.of(r); !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		slices.Sort(values)
		out = append(out, native.OneOfTexts(p.value, values))
	}
	return cel.And(out...)
}

// asked is whether a request is one of those that the unit is about.
func (u Unit) asked() cel.Bool {
	if u.asks.IsZero() {
		return cel.True()
	}
	return u.asks
}

// applies is whether the unit says anything of a request.
func (u Unit) applies() cel.Bool { return cel.And(u.asked(), u.Match) }

// Keys are of the objects that the unit is in: units with the same key may share one.
func (u Unit) Keys(o Options) []string {
	var out []string
	about := u.Target.Key()
	if o.ByKind && native.PodOf(u.Target) != nil {
		about = vap.PodName
	}
	for _, op := range u.Operations {
		if o.ByKind {
			op = classOf(op)
		}
		key := about + "\x00" + string(op) + "\x00" + u.attributes(o)
		if !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// classOf is the operation under which it is packed with others.
func classOf(op native.Operation) native.Operation {
	if op == native.Update {
		return native.Create
	}
	return op
}
