package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// applies is the part of match and exclude that the resource rules do not say,
// for one target and the operations at hand.
func (l *lowering) applies() cel.Bool {
	in := l.block(l.rule.Match, l.filter)
	if in.IsFalse() || l.rule.Exclude == nil {
		return in
	}
	return cel.And(in, cel.Not(l.block(l.rule.Exclude, l.filter)))
}

// block is a match or exclude block: the first of any, all and the legacy form
// that is not empty counts.
func (l *lowering) block(m *policy.MatchBlock, one func(*policy.Filter) cel.Bool) cel.Bool {
	switch {
	case m == nil:
		return cel.False()
	case len(m.Any) > 0:
		alts := make([]cel.Bool, len(m.Any))
		for i, f := range m.Any {
			alts[i] = one(f)
		}
		return cel.Or(alts...)
	case len(m.All) > 0:
		conds := make([]cel.Bool, len(m.All))
		for i, f := range m.All {
			conds[i] = one(f)
		}
		return cel.And(conds...)
	case m.Legacy != nil:
		return one(m.Legacy)
	}
	return cel.False()
}

// filters are the filters of a block that count.
func filters(m *policy.MatchBlock) []*policy.Filter {
	switch {
	case m == nil:
		return nil
	case len(m.Any) > 0:
		return m.Any
	case len(m.All) > 0:
		return m.All
	case m.Legacy != nil:
		return []*policy.Filter{m.Legacy}
	}
	return nil
}

// filter is one filter. Everything it gives must hold; an empty one matches nothing.
func (l *lowering) filter(f *policy.Filter) cel.Bool {
	l.setPos(f.Pos)
	if isEmpty(f) {
		return cel.False()
	}
	if len(f.Operations) > 0 && !l.filterOps(f) {
		return cel.False()
	}
	conds := []cel.Bool{}
	if len(f.Kinds) > 0 {
		conds = append(conds, l.kinds(f.Kinds))
	}
	if conds != nil && cel.And(conds...).IsFalse() {
		return cel.False()
	}
	if f.Name != nil {
		conds = append(conds, l.names([]policy.Text{*f.Name}))
	}
	if len(f.Names) > 0 {
		conds = append(conds, l.names(f.Names))
	}
	if len(f.Namespaces) > 0 {
		conds = append(conds, l.namespaces(f.Namespaces))
	}
	for _, a := range f.Annotations {
		conds = append(conds, l.pair(l.meta("annotations"), a))
	}
	if f.Selector != nil {
		conds = append(conds, l.selector(l.meta("labels"), f.Selector))
	}
	if f.NamespaceSelector != nil {
		conds = append(conds, l.namespaceSelector(f.NamespaceSelector))
	}
	return cel.And(append(conds, l.user(f))...)
}

func isEmpty(f *policy.Filter) bool {
	return len(f.Kinds) == 0 && f.Name == nil && len(f.Names) == 0 && len(f.Namespaces) == 0 && len(f.Annotations) == 0 &&
		f.Selector == nil && f.NamespaceSelector == nil && len(f.Roles) == 0 && len(f.ClusterRoles) == 0 && len(f.Subjects) == 0 &&
		len(f.Operations) == 0
}

// filterOps tells whether a filter is about the operations of the walk.
func (l *lowering) filterOps(f *policy.Filter) bool {
	if l.exception {
		return true
	}
	if l.prior {
		return slices.Contains(f.Operations, string(native.Create))
	}
	has := func(op native.Operation) bool { return slices.Contains(f.Operations, string(op)) }
	if first := has(l.ops[0]); !slices.ContainsFunc(l.ops, func(op native.Operation) bool { return has(op) != first }) {
		return first
	}
	panic(perOperation{})
}

// kinds says of the target whether one of the selectors means it.
func (l *lowering) kinds(kinds []policy.Text) cel.Bool {
	var alts []cel.Bool
	for _, k := range kinds {
		sel, ok := policy.ParseKind(k.Value)
		if !ok {
			continue
		}
		alts = append(alts, l.kind(sel))
	}
	return cel.Or(alts...)
}

func (l *lowering) kind(sel policy.KindSelector) cel.Bool {
	t := l.target
	if l.prior && t.Subresource != "" {
		return l.kindOfOld(sel)
	}
	if t.Resource == "*" || t.Resource == "*/*" || t.GVK == (schema.GVK{}) && t.Parent == (schema.GVK{}) {
		return l.kindAtRunTime(sel)
	}
	if t.Guessed {
		if !scalar.WildMatch(sel.Kind, t.Parent.Kind) || !l.subMatches(sel) {
			return cel.False()
		}
		resource := cel.Ident("request").Field("resource")
		return cel.And(guessedPart(resource.Field("group"), t.Parent.Group, sel.Group), guessedPart(resource.Field("version"), t.Parent.Version, sel.Version))
	}
	gvk := t.Parent
	return cel.Lit(selects(sel, gvk) && l.subMatches(sel))
}

// kindOfOld is kind, of the old object of a request for a subresource. It is judged as
// one that is created, which has its own kind and no subresource: the old object of
// deployments/scale is a Scale, so neither Deployment nor Deployment/scale selects it.
func (l *lowering) kindOfOld(sel policy.KindSelector) cel.Bool {
	t := l.target
	switch {
	case !scalar.WildMatch(sel.Subresource, ""):
		return cel.False()
	case t.GVK == (schema.GVK{}) || t.Guessed:
		return objectKindMatches(sel)
	}
	return cel.Lit(selects(sel, t.GVK))
}

func selects(sel policy.KindSelector, k schema.GVK) bool {
	return scalar.WildMatch(sel.Group, k.Group) && scalar.WildMatch(sel.Version, k.Version) && scalar.WildMatch(sel.Kind, k.Kind)
}

// guessedPart compares a group or version with a selector's. Of a kind that is not
// known, one that the selector leaves open is only known at run time.
func guessedPart(actual cel.Value, known, pattern string) cel.Bool {
	if known == "" || scalar.IsWild(known) {
		return native.Matches(actual, pattern)
	}
	return cel.Lit(scalar.WildMatch(pattern, known))
}

func (l *lowering) subMatches(sel policy.KindSelector) bool {
	t := l.target
	if scalar.WildMatch(sel.Subresource, t.Subresource) {
		return true
	}
	return t.Subresource == "ephemeralcontainers" && t.Parent == schema.GVK{Version: "v1", Kind: "Pod"}
}

// kindAtRunTime asks the request for its kind, where the target is a wildcard. The
// kind of a subresource's body is not the one that Kyverno means.
func (l *lowering) kindAtRunTime(sel policy.KindSelector) cel.Bool {
	req := cel.Ident("request")
	sub := req.Opt("subResource").OrValue(cel.String(""))
	var conds []cel.Bool
	if l.target.Resource != "*" {
		conds = append(conds, native.Matches(sub, sel.Subresource))
	} else if !scalar.WildMatch(sel.Subresource, "") {
		return cel.False()
	}
	if sel.Kind == "*" && sel.Group == "*" && sel.Version == "*" {
		return cel.And(conds...)
	}
	if l.target.Resource == "*" || l.prior {
		return cel.And(append(conds, objectKindMatches(sel))...)
	}
	if sel.Kind != "*" {
		panic(l.unsupported("a kind beside a wildcard that covers subresources"))
	}
	resource := req.Field("resource") // of deployments/scale it is of apps/v1, and the kind in the request of autoscaling/v1
	return cel.And(append(conds, native.Matches(resource.Field("group"), sel.Group), native.Matches(resource.Field("version"), sel.Version))...)
}

// objectKindMatches asks the request for the kind of its object.
func objectKindMatches(sel policy.KindSelector) cel.Bool {
	kind := cel.Ident("request").Field("kind")
	return cel.And(native.Matches(kind.Field("group"), sel.Group), native.Matches(kind.Field("version"), sel.Version), native.Matches(kind.Field("kind"), sel.Kind))
}

// subject is the object that match looks at: the new one, or on DELETE the old.
func (l *lowering) subject() operand {
	if l.object.form == placeForm {
		return l.object
	}
	return l.old
}

func (l *lowering) meta(field string) place {
	j := l.subject()
	if j.form != placeForm {
		return place{never: true}
	}
	return j.v.field("metadata").field(field)
}

// names is: the object's name, or the prefix it is generated from, matches.
func (l *lowering) names(texts []policy.Text) cel.Bool {
	words := make([]string, len(texts))
	for i, t := range texts {
		words[i] = t.Value
	}
	name := l.meta("name")
	if name.never { // as with the options of a connection
		return cel.Lit(scalar.AnyWild(words, ""))
	}
	return name.soft(scalar.AnyWild(words, ""), l.missingName(words), func(x cel.Value) cel.Bool { return native.OneOfTexts(x, words) })
}

// missingName stands for the name of an object that has none, where it is no match.
func (l *lowering) missingName(words []string) cel.Value {
	if scalar.AnyWild(words, "") {
		return cel.Value{}
	}
	return cel.String("")
}

// namespaces is: the object's namespace matches; a Namespace's own name is meant.
func (l *lowering) namespaces(texts []policy.Text) cel.Bool {
	words := make([]string, len(texts))
	for i, t := range texts {
		words[i] = t.Value
	}
	if l.target.GVK == (schema.GVK{Version: "v1", Kind: "Namespace"}) {
		return l.meta("name").soft(scalar.AnyWild(words, ""), cel.Value{}, func(x cel.Value) cel.Bool { return native.OneOfTexts(x, words) })
	}
	ns := cel.Ident("request").Field("namespace")
	switch l.target.Scope {
	case native.Namespaced:
		return native.OneOfTexts(ns, words)
	case native.Cluster:
		return cel.Lit(scalar.AnyWild(words, ""))
	}
	return native.OneOfTexts(cel.Ident("request").Opt("namespace").OrValue(cel.String("")), words)
}

// pair is: some entry of the map matches key and value, both perhaps wildcards.
func (l *lowering) pair(m place, p policy.Pair) cel.Bool {
	if m.never {
		return cel.False()
	}
	if scalar.IsWild(p.Key) {
		found := l.binders.Exists(m.settled().expr, "key", func(k cel.Value) cel.Bool {
			return cel.And(native.Matches(k, p.Key), native.Matches(m.expr.Index(k), p.Value))
		})
		return cel.And(m.found(), found)
	}
	neutral := cel.String("")
	if scalar.WildMatch(p.Value, "") {
		neutral = cel.Value{}
	}
	return m.field(p.Key).soft(false, neutral, func(x cel.Value) cel.Bool { return native.Matches(x, p.Value) })
}

// selector is a label selector over the labels of an object. An invalid one
// matches nothing.
func (l *lowering) selector(labels place, s *policy.Selector) cel.Bool {
	if !slices.ContainsFunc(s.Expressions, native.InvalidRequirement) {
		return l.validSelector(labels, s)
	}
	return cel.False()
}

func (l *lowering) validSelector(labels place, s *policy.Selector) cel.Bool {
	var conds []cel.Bool
	for _, p := range s.MatchLabels {
		conds = append(conds, l.pair(labels, p))
	}
	for _, e := range s.Expressions {
		conds = append(conds, l.requirement(labels, e))
	}
	return cel.And(conds...)
}

func (l *lowering) requirement(labels place, e policy.SelectorExpression) cel.Bool {
	label := labels.field(e.Key)
	if labels.never {
		label = place{never: true}
	}
	in := func(x cel.Value) cel.Bool { return native.OneOfWords(x, e.Values) }
	switch e.Operator {
	case "In":
		if slices.Contains(e.Values, "") {
			return label.soft(false, cel.Value{}, in)
		}
		return label.soft(false, cel.String(""), in)
	case "NotIn":
		if slices.Contains(e.Values, "") {
			return label.soft(true, cel.Value{}, func(x cel.Value) cel.Bool { return cel.Not(in(x)) })
		}
		return cel.Not(label.soft(false, cel.String(""), in))
	case "Exists":
		return label.soft(false, cel.Value{}, func(cel.Value) cel.Bool { return cel.True() })
	case "DoesNotExist":
		return cel.Not(label.soft(false, cel.Value{}, func(cel.Value) cel.Bool { return cel.True() }))
	}
	return cel.False()
}

// namespaceSelector is a selector over the labels of the request's namespace. Of
// cluster-scoped objects these are empty, and a Namespace never matches.
func (l *lowering) namespaceSelector(s *policy.Selector) cel.Bool {
	if l.target.GVK == (schema.GVK{Version: "v1", Kind: "Namespace"}) {
		return cel.Lit(l.exception)
	}
	if s == l.selected {
		return cel.True()
	}
	none := place{never: true}
	if l.target.Scope == native.Cluster {
		return l.selector(none, s)
	}
	l.usesNamespace = true
	ns := cel.Ident("namespaceObject")
	meta := ns.Field("metadata")
	labels := place{expr: meta.Field("labels"), typ: mapOf(stringType()), opt: meta.Opt("labels"), guards: []guard{{cond: meta.Has("labels")}}}
	has := l.selector(labels, s)
	if l.target.Scope == native.Namespaced && !l.target.IsAnyResource() {
		return has
	}
	empty := l.selector(none, s)
	l.usesNamespace = true
	isCluster := ns.Eq(cel.Null())
	if l.target.IsAnyResource() { // which a Namespace is not, though it is in none
		kind := cel.Ident("request").Field("kind")
		isNamespace := cel.And(kind.Field("group").Eq(cel.String("")), kind.Field("kind").Eq(cel.String("Namespace")))
		if l.exception {
			empty = cel.Or(empty, isNamespace)
		} else {
			empty = cel.And(empty, cel.Not(isNamespace))
		}
	}
	return cel.CondBool(isCluster, empty, has)
}

// user is the part of a filter about who asks.
func (l *lowering) user(f *policy.Filter) cel.Bool {
	if len(f.Roles) > 0 || len(f.ClusterRoles) > 0 {
		panic(l.refuse(diag.Roles, "roles and clusterRoles are found by reading RBAC objects, which CEL cannot"))
	}
	if len(f.Subjects) == 0 {
		return cel.True()
	}
	if l.prior {
		return cel.Lit(l.matchesNobody(f))
	}
	user := cel.Ident("request").Field("userInfo")
	var alts []cel.Bool
	for _, s := range f.Subjects {
		switch s.Kind {
		case "User":
			alts = append(alts, native.Matches(user.Field("username"), s.Name))
		case "ServiceAccount":
			alts = append(alts, native.Matches(user.Field("username"), "system:serviceaccount:"+s.Namespace+":"+s.Name))
		case "Group":
			groups := user.Opt("groups").OrValue(cel.List())
			alts = append(alts, l.inGroups(groups, s.Name))
		}
	}
	return cel.Or(alts...)
}

// matchesNobody is user for the one whom Kyverno makes up as the creator of the old
// object. No filter of match is about nobody; in exclude, wildcards are.
func (l *lowering) matchesNobody(f *policy.Filter) bool {
	return slices.Contains(filters(l.rule.Exclude), f) && slices.ContainsFunc(f.Subjects, func(s policy.Subject) bool {
		switch s.Kind {
		case "User":
			return scalar.WildMatch(s.Name, "kyverno:kyverno-invalid-controller")
		case "Group":
			return scalar.WildMatch(s.Name, "kyverno:invalidgroup")
		}
		return false
	})
}

func (l *lowering) inGroups(groups cel.Value, name string) cel.Bool {
	if !scalar.IsWild(name) {
		return cel.String(name).In(groups)
	}
	return l.binders.Exists(groups, "group", func(g cel.Value) cel.Bool { return native.Matches(g, name) })
}
