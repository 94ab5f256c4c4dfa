package pack

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
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

// namesLength is how many bytes the names of violated rules have at most in a
// message. A message of more than 5,120 bytes is not shown.
const namesLength = 2_500

// repeatedCheck is the longest check that stands in two places. A longer one
// becomes a variable.
const repeatedCheck = 100

// nameOthers makes each message of a guarded object say which other rules of it are
// violated: the API server reports one violation, and up to 1.36 records one. It
// evaluates all messages of an object, but only behind the guard; so this costs
// nothing where all is well. Rules that may err are not asked for: an error of one
// would lose the message of another.
func (g group) nameOthers(d *vap.Draft, members []Unit) {
	if len(members) < 2 || d.Guard.IsZero() || d.Guard.IsTrue() {
		return
	}
	asked := func(v vap.Validation) bool {
		u := members[v.Member]
		return u.CEL == nil && !u.Pre.Errs && !u.Holds.Errs
	}
	var states []cel.Value
	rest, length := cel.True(), 0
	for i := range d.Validations {
		v := &d.Validations[i]
		if !asked(*v) {
			continue
		}
		label := g.label(members[v.Member])
		holds := repeatable(d, v, members[v.Member].Rule.Origin)
		if length += len(label); length > namesLength {
			rest = cel.And(rest, holds)
			continue
		}
		states = append(states, cel.Cond(holds, cel.String(""), cel.String(label)))
	}
	if !rest.IsTrue() {
		states = append(states, cel.Cond(rest, cel.String(""), cel.String("others")))
	}
	if len(states) < 2 {
		return
	}
	violated := declare(d, "violated", new(cel.Scope).Filter(cel.List(states...), "rule", func(rule cel.Value) cel.Bool { return rule.Ne(cel.String("")) }))
	all := declare(d, "allViolated", listed(violated, 1, " (all violated: "))
	for i := range d.Validations {
		if v := &d.Validations[i]; asked(*v) {
			v.More = &all
		} else {
			too := listed(violated, 0, " (violated too: ")
			v.More = &too
		}
	}
}

// declare adds a variable to the draft.
func declare(d *vap.Draft, name string, expr cel.Value) cel.Value {
	name = native.FreshName(name, d.Variables)
	d.Variables = append(d.Variables, vap.Variable{Pos: d.Members[0].Pos, Name: name, Expr: expr})
	return native.VariableNamed(name)
}

// listed is the names after some words, if there are more than so many.
func listed(names cel.Value, more int64, words string) cel.Value {
	return cel.Cond(names.Size().Compare(cel.Greater, cel.Int(more)),
		cel.String(words).Plus(names.Call(cel.FuncJoin, cel.String(", "))).Plus(cel.String(")")), cel.String(""))
}

// label names a member to those who read a message.
func (g group) label(u Unit) string {
	if len(g.sources()) > 1 || g.byKind {
		return native.MemberName(u.Policy) + "/" + u.name()
	}
	return u.name()
}

// repeatable makes the check of a rule a variable unless it is short.
func repeatable(d *vap.Draft, v *vap.Validation, rule string) cel.Bool {
	if len(v.Expr.String()) <= repeatedCheck {
		return v.Expr
	}
	i := slices.IndexFunc(d.Variables, func(have vap.Variable) bool { return cel.Equal(have.Expr, v.Expr.Value) })
	if i < 0 {
		i = len(d.Variables)
		d.Variables = append(d.Variables, vap.Variable{Pos: v.Pos, Name: native.NameByRule("holds", rule, d.Variables), Expr: v.Expr.Value})
	}
	v.Expr = native.VariableNamed(d.Variables[i].Name).AsBool()
	return v.Expr
}

// byAction is the draft of a group, or one for each action where a match condition
// says which of them is meant.
func (g group) byAction(d *vap.Draft) []*vap.Draft {
	u := g.units[0]
	overrides := native.OverridesOf(u.Policy, u.Rule)
	if !native.WildOverrides(overrides) {
		return []*vap.Draft{d}
	}
	var out []*vap.Draft
	for _, action := range []policy.Action{policy.Enforce, policy.Audit} {
		when := g.takes(action, u.action(), overrides)
		if when.IsFalse() {
			continue
		}
		one := *d
		one.Bindings = []vap.Binding{u.binding(action)}
		if !when.IsTrue() {
			name := strings.ToLower(string(action))
			one.Base += "-" + name
			one.Conditions = append([]vap.Condition{{Pos: overrides[0].Pos, Name: name, Expr: when}}, d.Conditions...)
		}
		out = append(out, &one)
	}
	return out
}

// takes is: the overrides give the action for the request. Without a namespace,
// and for Namespaces themselves, that is known.
func (g group) takes(action, base policy.Action, overrides []policy.ActionOverride) cel.Bool {
	req := cel.Ident("request")
	outer := native.ClusterAction(base, overrides) == action
	inNamespaces, outside := g.scopes()
	switch {
	case !inNamespaces:
		return cel.Lit(outer)
	case !outside:
		return actionIn(req.Field("namespace"), action, base, overrides)
	}
	when := actionIn(req.Optional("namespace").OrValue(cel.String("")), action, base, overrides)
	if !slices.ContainsFunc(g.targets, func(t placed) bool {
		return t.Target.IsAnyResource() || t.Parent == schema.GVK{Version: "v1", Kind: "Namespace"}
	}) {
		return when
	}
	resource := req.Field("resource")
	itself := cel.And(resource.Field("group").Eq(cel.String("")), resource.Field("resource").Eq(cel.String("namespaces")))
	if outer {
		return cel.Or(itself, when).Simplify()
	}
	return cel.And(cel.Not(itself), when).Simplify()
}

// actionIn is: the overrides give the action in the namespace of that name.
func actionIn(name cel.Value, action, base policy.Action, overrides []policy.ActionOverride) cel.Bool {
	out := cel.Lit(base == action)
	for _, o := range slices.Backward(overrides) {
		hit := cel.Lit(o.Namespaces == nil)
		if slices.Contains(o.Namespaces, "*") {
			hit = cel.True()
		} else if len(o.Namespaces) > 0 {
			hit = native.OneOfTexts(name, o.Namespaces)
		}
		if o.Action == action {
			out = cel.Or(hit, out)
		} else {
			out = cel.And(cel.Not(hit), out)
		}
	}
	return out.Simplify()
}
