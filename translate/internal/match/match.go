package match

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
	"github.com/kvap/kvap/vap"
)

// Applies is the part of match and exclude that the resource rules do not say,
// for one target and the operations at hand.
func Applies(l *read.Lowering) cel.Bool {
	in := block(l.Rule.Match, func(f *policy.Filter) cel.Bool { return filter(l, f) })
	if in.IsFalse() || l.Rule.Exclude == nil {
		return in
	}
	return cel.And(in, cel.Not(block(l.Rule.Exclude, func(f *policy.Filter) cel.Bool { return filter(l, f) })))
}

// block is a match or exclude block: the first of any, all and the legacy form
// that is not empty counts.
func block(m *policy.MatchBlock, one func(*policy.Filter) cel.Bool) cel.Bool {
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

// filter is one filter. Everything it gives must hold; an empty one matches nothing.
func filter(l *read.Lowering, f *policy.Filter) cel.Bool {
	l.SetPos(f.Pos)
	if IsEmpty(f) {
		return cel.False()
	}
	if len(f.Operations) > 0 && !filterOps(l, f) {
		return cel.False()
	}
	conds := []cel.Bool{}
	if len(f.Kinds) > 0 {
		conds = append(conds, kinds(l, f.Kinds))
	}
	if cel.And(conds...).IsFalse() {
		return cel.False()
	}
	if f.Name != nil {
		conds = append(conds, names(l, []policy.Text{*f.Name}))
	}
	if len(f.Names) > 0 {
		conds = append(conds, names(l, f.Names))
	}
	if len(f.Namespaces) > 0 {
		conds = append(conds, namespaces(l, f.Namespaces))
	}
	for _, a := range f.Annotations {
		conds = append(conds, pair(l, meta(l, "annotations"), a))
	}
	if f.Selector != nil {
		conds = append(conds, selector(l, meta(l, "labels"), f.Selector))
	}
	if f.NamespaceSelector != nil {
		conds = append(conds, namespaceSelector(l, f.NamespaceSelector))
	}
	return cel.And(append(conds, user(l, f))...)
}

// IsEmpty tells that a filter asks for nothing.
func IsEmpty(f *policy.Filter) bool {
	return len(f.Kinds) == 0 && f.Name == nil && len(f.Names) == 0 && len(f.Namespaces) == 0 && len(f.Annotations) == 0 &&
		f.Selector == nil && f.NamespaceSelector == nil && len(f.Roles) == 0 && len(f.ClusterRoles) == 0 && len(f.Subjects) == 0 &&
		len(f.Operations) == 0
}

// filterOps tells whether a filter is about the operations of the walk.
func filterOps(l *read.Lowering, f *policy.Filter) bool {
	if l.Exception {
		return true
	}
	if l.OfOld() {
		return slices.Contains(f.Operations, string(native.Create))
	}
	has := func(op native.Operation) bool { return slices.Contains(f.Operations, string(op)) }
	if first := has(l.Ops[0]); !slices.ContainsFunc(l.Ops, func(op native.Operation) bool { return has(op) != first }) {
		return first
	}
	panic(read.PerOperation{})
}

// kinds says of the target whether one of the selectors means it.
func kinds(l *read.Lowering, kinds []policy.Text) cel.Bool {
	var alts []cel.Bool
	for _, k := range kinds {
		if sel, ok := policy.ParseKind(k.Value); ok {
			alts = append(alts, kind(l, sel))
		}
	}
	return cel.Or(alts...)
}

func kind(l *read.Lowering, sel policy.KindSelector) cel.Bool {
	t := l.Target
	if l.OfOld() && t.Subresource != "" {
		return kindOfOld(l, sel)
	}
	if t.Resource == "*" || t.Resource == "*/*" || t.GVK == (schema.GVK{}) && t.Parent == (schema.GVK{}) {
		return kindAtRunTime(l, sel)
	}
	if t.Guessed {
		if !scalar.WildMatch(sel.Kind, t.Parent.Kind) || !subMatches(l, sel) {
			return cel.False()
		}
		resource := cel.Ident("request").Field("resource")
		return cel.And(guessedPart(resource.Field("group"), t.Parent.Group, sel.Group), guessedPart(resource.Field("version"), t.Parent.Version, sel.Version))
	}
	return cel.Lit(selects(sel, t.Parent) && subMatches(l, sel))
}

// kindOfOld is kind, of the old object of a request for a subresource. It is judged as
// one that is created, which has its own kind and no subresource: the old object of
// deployments/scale is a Scale, so neither Deployment nor Deployment/scale selects it.
func kindOfOld(l *read.Lowering, sel policy.KindSelector) cel.Bool {
	t := l.Target
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

func subMatches(l *read.Lowering, sel policy.KindSelector) bool {
	t := l.Target
	if scalar.WildMatch(sel.Subresource, t.Subresource) {
		return true
	}
	return t.Subresource == "ephemeralcontainers" && t.Parent == schema.GVK{Version: "v1", Kind: "Pod"}
}

// kindAtRunTime asks the request for its kind, where the target is a wildcard. The
// kind of a subresource's body is not the one that Kyverno means.
func kindAtRunTime(l *read.Lowering, sel policy.KindSelector) cel.Bool {
	req := cel.Ident("request")
	sub := req.Optional("subResource").OrValue(cel.String(""))
	var conds []cel.Bool
	if l.Target.Resource != "*" {
		conds = append(conds, native.Matches(sub, sel.Subresource))
	} else if !scalar.WildMatch(sel.Subresource, "") {
		return cel.False()
	}
	if sel.Kind == "*" && sel.Group == "*" && sel.Version == "*" {
		return cel.And(conds...)
	}
	if l.Target.Resource == "*" || l.OfOld() {
		return cel.And(append(conds, objectKindMatches(sel))...)
	}
	if sel.Kind != "*" {
		panic(l.Unsupported("a kind beside a wildcard that covers subresources"))
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
func subject(l *read.Lowering) read.Operand {
	if l.Object.Form == read.PlaceForm {
		return l.Object
	}
	return l.Old
}

func meta(l *read.Lowering, field string) read.Place {
	j := subject(l)
	if j.Form != read.PlaceForm {
		return read.Place{Never: true}
	}
	return j.V.Field("metadata").Field(field)
}

// names is: the object's name, or the prefix it is generated from, matches.
func names(l *read.Lowering, texts []policy.Text) cel.Bool {
	words := make([]string, len(texts))
	for i, t := range texts {
		words[i] = t.Value
	}
	name := meta(l, "name")
	if name.Never { // as with the options of a connection
		return cel.Lit(scalar.AnyWild(words, ""))
	}
	return name.Soft(scalar.AnyWild(words, ""), func(x cel.Value) cel.Bool { return native.OneOfTexts(x, words) })
}

// namespaces is: the object's namespace matches; a Namespace's own name is meant.
func namespaces(l *read.Lowering, texts []policy.Text) cel.Bool {
	words := make([]string, len(texts))
	for i, t := range texts {
		words[i] = t.Value
	}
	if l.Target.GVK == (schema.GVK{Version: "v1", Kind: "Namespace"}) {
		return meta(l, "name").Soft(scalar.AnyWild(words, ""), func(x cel.Value) cel.Bool { return native.OneOfTexts(x, words) })
	}
	ns := cel.Ident("request").Field("namespace")
	switch l.Target.Scope {
	case native.Namespaced:
		return native.OneOfTexts(ns, words)
	case native.Cluster:
		return cel.Lit(scalar.AnyWild(words, ""))
	}
	return native.OneOfTexts(cel.Ident("request").Optional("namespace").OrValue(cel.String("")), words)
}

// pair is: some entry of the map matches key and value, both perhaps wildcards.
func pair(l *read.Lowering, m read.Place, p policy.Pair) cel.Bool {
	if m.Never {
		return cel.False()
	}
	if scalar.IsWild(p.Key) {
		found := l.Binders.Exists(m.Settled().Expr, "key", func(k cel.Value) cel.Bool {
			return cel.And(native.Matches(k, p.Key), native.Matches(m.Expr.Index(k), p.Value))
		})
		return cel.And(m.Found(), found)
	}
	return m.Field(p.Key).Soft(false, func(x cel.Value) cel.Bool { return native.Matches(x, p.Value) })
}

// selector is a label selector over the labels of an object. An invalid one
// matches nothing.
func selector(l *read.Lowering, labels read.Place, s *policy.Selector) cel.Bool {
	if slices.ContainsFunc(s.Expressions, native.InvalidRequirement) {
		return cel.False()
	}
	var conds []cel.Bool
	for _, p := range s.MatchLabels {
		conds = append(conds, pair(l, labels, p))
	}
	for _, e := range s.Expressions {
		conds = append(conds, requirement(labels, e))
	}
	return cel.And(conds...)
}

func requirement(labels read.Place, e policy.SelectorExpression) cel.Bool {
	label := labels.Field(e.Key)
	if labels.Never {
		label = read.Place{Never: true}
	}
	in := func(x cel.Value) cel.Bool { return native.OneOfWords(x, e.Values) }
	switch e.Operator {
	case "In":
		return label.Soft(false, in)
	case "NotIn":
		return cel.Not(label.Soft(false, in))
	case "Exists":
		return label.Soft(false, func(cel.Value) cel.Bool { return cel.True() })
	case "DoesNotExist":
		return cel.Not(label.Soft(false, func(cel.Value) cel.Bool { return cel.True() }))
	}
	return cel.False()
}

// namespaceSelector is a selector over the labels of the request's namespace. Of
// cluster-scoped objects these are empty, and a Namespace never matches.
func namespaceSelector(l *read.Lowering, s *policy.Selector) cel.Bool {
	if l.Target.GVK == (schema.GVK{Version: "v1", Kind: "Namespace"}) {
		return cel.Lit(l.Exception)
	}
	if s == l.Selected {
		return cel.True()
	}
	none := read.Place{Never: true}
	if l.Target.Scope == native.Cluster {
		return selector(l, none, s)
	}
	l.UsesNamespace = true
	ns := cel.Ident("namespaceObject")
	meta := ns.Field("metadata")
	labels := read.OptionalField(meta, "labels", read.MapOf(read.StringType()))
	has := selector(l, labels, s)
	if l.Target.Scope == native.Namespaced && !l.Target.IsAnyResource() {
		return has
	}
	empty := selector(l, none, s)
	isCluster := ns.Eq(cel.Null())
	if l.Target.IsAnyResource() { // which a Namespace is not, though it is in none
		kind := cel.Ident("request").Field("kind")
		isNamespace := cel.And(kind.Field("group").Eq(cel.String("")), kind.Field("kind").Eq(cel.String("Namespace")))
		if l.Exception {
			empty = cel.Or(empty, isNamespace)
		} else {
			empty = cel.And(empty, cel.Not(isNamespace))
		}
	}
	return cel.CondBool(isCluster, empty, has)
}

// user is the part of a filter about who asks.
func user(l *read.Lowering, f *policy.Filter) cel.Bool {
	if len(f.Roles) > 0 || len(f.ClusterRoles) > 0 {
		panic(l.Refuse(diag.Roles, "roles and clusterRoles are found by reading RBAC objects, which CEL cannot"))
	}
	if len(f.Subjects) == 0 {
		return cel.True()
	}
	if l.OfOld() {
		return cel.Lit(matchesNobody(l, f))
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
			groups := user.Optional("groups").OrValue(cel.List())
			in := cel.String(s.Name).In(groups)
			if scalar.IsWild(s.Name) {
				in = l.Binders.Exists(groups, "group", func(g cel.Value) cel.Bool { return native.Matches(g, s.Name) })
			}
			alts = append(alts, in)
		}
	}
	return cel.Or(alts...)
}

// matchesNobody is user for the one whom Kyverno makes up as the creator of the old
// object. No filter of match is about nobody; in exclude, wildcards are.
func matchesNobody(l *read.Lowering, f *policy.Filter) bool {
	return slices.Contains(query.Filters(l.Rule.Exclude), f) && slices.ContainsFunc(f.Subjects, func(s policy.Subject) bool {
		switch s.Kind {
		case "User":
			return scalar.WildMatch(s.Name, "kyverno:kyverno-invalid-controller")
		case "Group":
			return scalar.WildMatch(s.Name, "kyverno:invalidgroup")
		}
		return false
	})
}

// ConstraintsOf are matchConstraints; without any nothing matches.
func ConstraintsOf(m *policy.MatchConstraints) vap.Constraints {
	if m == nil {
		return vap.Constraints{}
	}
	return vap.Constraints{
		Rules: constraintRules(m.Rules), Exclude: constraintRules(m.Exclude), MatchPolicy: m.MatchPolicy,
		NamespaceSelector: native.PlainSelector(m.NamespaceSelector), ObjectSelector: native.PlainSelector(m.ObjectSelector),
	}
}

func constraintRules(rules []policy.ResourceRule) []vap.ResourceRule {
	var out []vap.ResourceRule
	for _, r := range rules {
		out = append(out, vap.ResourceRule{
			Groups: r.Groups, Versions: r.Versions, Resources: r.Resources, Operations: r.Operations, Names: r.Names, Scope: r.Scope,
		})
	}
	return out
}

// CheckOverrides refuses overrides that no selector can say, and tells of those
// that Kyverno reads in two ways.
func CheckOverrides(l *read.Lowering) {
	overrides := native.OverridesOf(l.Policy, l.Rule)
	for _, o := range overrides {
		l.SetPos(o.Pos)
		if o.NamespaceSelector != nil && native.WildOverrides(overrides) {
			panic(l.Unsupported("a selector in an action override, while a wildcard names namespaces in one,"))
		}
		if o.Namespaces != nil && o.NamespaceSelector != nil {
			l.Note(diag.OverrideBoth, "an action override with namespaces and a selector: Kyverno takes one or the other in one place, and both in another; here both must hold")
		}
	}
	l.SetPos(l.Rule.Pos)
}

// UnlessExcepted is: no PolicyException is about this rule and this object. An
// exception's conditions that err do not apply, so they are asked for softly.
func UnlessExcepted(l *read.Lowering) cel.Bool {
	out := cel.True()
	for _, e := range l.Opts.Exceptions {
		if e.Invalid || !Excepts(l, e) || len(e.PodSecurity) > 0 && l.Rule.Validate.PodSecurity != nil {
			continue
		}
		out = cel.And(out, cel.Not(Covered(l, e)))
	}
	return out
}

// Covered is: the exception is about this object.
func Covered(l *read.Lowering, e *policy.Exception) cel.Bool {
	l = l.Inside()
	l.Exception = true
	hit := block(e.Match, func(f *policy.Filter) cel.Bool { return filter(l, f) })
	if e.Conditions != nil {
		hit = cel.And(hit, condition.OrFalse(l, e.Conditions))
	}
	return hit
}

// Excepts tells whether an exception names the rule.
func Excepts(l *read.Lowering, e *policy.Exception) bool {
	name := l.Policy.Name
	if l.Policy.Namespaced() {
		name = l.Policy.Namespace + "/" + name
	}
	for _, ref := range e.Exceptions {
		if ref.PolicyName == name && scalar.AnyWild(ref.RuleNames, l.Rule.Name) {
			return true
		}
	}
	return false
}
