package pack

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// The action of a violation can depend on the namespace: the first override that
// hits decides. A binding has one action and a selector of namespaces, which is a
// conjunction; so the overrides are taken apart into sets of namespaces that exclude each
// other, each a conjunction with one action.
//
// A selector of namespaces never leaves out an object without a namespace. Such
// objects, and Namespaces themselves, have the action that Kyverno finds for the
// namespace "" without labels; where a policy meets both kinds of objects, their
// bindings are told apart by scope.
//
// No selector knows wildcards. Overrides with a wildcard for namespaces make two
// policy objects, one for each action, which a match condition tells apart.

// NameLabel is the label with the name that every namespace has.
const NameLabel = "kubernetes.io/metadata.name"

// bindings say where a rule counts and what a violation leads to. Each object that
// the group is about falls under exactly one of them.
func (g group) bindings() []vap.Binding {
	u := g.units[0]
	if u.Policy.Namespaced() {
		b := u.binding(u.action())
		b.NamespaceSelector.Labels = []vap.Label{{Key: NameLabel, Value: u.Policy.Namespace}}
		return []vap.Binding{b}
	}
	overrides := native.OverridesOf(u.Policy, u.Rule)
	if native.WildOverrides(overrides) { // see byAction
		return []vap.Binding{u.binding(u.action())}
	}
	inNamespaces, outside := g.scopes()
	other := native.ClusterAction(u.action(), overrides)
	if !inNamespaces {
		return []vap.Binding{u.binding(other)}
	}
	sets := namespaceSets(u.action(), overrides)
	if len(sets) == 1 && (!outside || sets[0].action == other) {
		return []vap.Binding{u.binding(sets[0].action)}
	}
	var out []vap.Binding
	for _, r := range sets {
		b := u.binding(r.action)
		b.NamespaceSelector, b.Suffix = r.selector(), suffix(string(r.action), out)
		if outside {
			b.Rules = everything("Namespaced")
		}
		out = append(out, b)
	}
	if outside {
		b := u.binding(other)
		b.Rules, b.Suffix = everything("Cluster"), suffix(string(other)+"-cluster", out)
		out = append(out, b)
	}
	return out
}

// scopes tells whether the group is about objects in namespaces, and about others.
func (g group) scopes() (inNamespaces, outside bool) {
	for _, t := range g.targets {
		inNamespaces = inNamespaces || t.Scope != native.Cluster
		outside = outside || t.Scope != native.Namespaced
	}
	return inNamespaces, outside
}

// everything is a rule for all that a policy matches, of one scope.
func everything(scope string) []vap.ResourceRule {
	all := []string{"*"}
	return []vap.ResourceRule{{Groups: all, Versions: all, Resources: []string{"*/*"}, Operations: all, Scope: scope}}
}

// suffix tells a binding from the policy's other ones.
func suffix(what string, others []vap.Binding) string {
	what = strings.ToLower(what)
	name := what
	for i := 2; slices.ContainsFunc(others, func(b vap.Binding) bool { return b.Suffix == name }); i++ {
		name = what + "-" + strconv.Itoa(i)
	}
	return name
}

// binding is a binding with an action, for everything.
func (u Unit) binding(a policy.Action) vap.Binding {
	b := vap.Binding{Actions: actions(a, u.Policy.EmitWarning), Reaches: u.Reaches}
	if p := u.Params; p != nil {
		b.Param = &vap.ParamRef{Name: p.Name, Namespace: p.Namespace, NotFound: "Deny"}
	}
	if u.CEL != nil && u.CEL.ParamRef != nil {
		ref := *u.CEL.ParamRef
		b.Param = &ref
	}
	if b.Param != nil && (a != policy.Enforce || u.Policy.FailurePolicy == policy.Ignore) {
		// Without params a rule is an error, which denies only under Enforce and
		// Fail. The API server would refuse requests whatever the binding's actions.
		b.Param.NotFound = "Allow"
	}
	return b
}

// actions are the validation actions for a failure action.
func actions(a policy.Action, warn bool) []string {
	switch {
	case a == policy.Enforce:
		return []string{"Deny"}
	case warn:
		return []string{"Audit", "Warn"}
	}
	return []string{"Audit"}
}

// matchPos is where a rule's match block stands.
func matchPos(u Unit) diag.Pos {
	if u.Rule.Match != nil {
		return u.Rule.Match.Pos
	}
	return u.Rule.Pos
}

// namespaceSets are sets of namespaces that exclude each other and cover all
// namespaces, each with its action.
func namespaceSets(base policy.Action, overrides []policy.ActionOverride) []namespaceSet {
	var out []namespaceSet
	rest := []namespaceSet{{}}
	for _, o := range overrides {
		var missed []namespaceSet
		for _, r := range rest {
			hit, ok := r.hitBy(o)
			if ok {
				hit.action = o.Action
				out = append(out, hit)
			}
			missed = append(missed, r.missedBy(o)...)
		}
		rest = missed
	}
	for _, r := range rest {
		r.action = base
		out = append(out, r)
	}
	return joined(out)
}

// A namespaceSet is the namespaces whose labels are all among the allowed ones, and
// the action there. A label that is not listed may be anything.
type namespaceSet struct {
	action policy.Action
	labels []label // by key
}

type label struct {
	key string
	labelValues
}

// labelValues is a set of values of a label. Only finite sets of values and what they
// leave over come up; that a label is absent is a value of its own.
type labelValues struct {
	absent bool
	others bool // all values but the listed, and not only the listed
	values []string
}

func anything() labelValues { return labelValues{absent: true, others: true} }

func (a labelValues) isAnything() bool { return a.absent && a.others && len(a.values) == 0 }

func (a labelValues) isNothing() bool { return !a.absent && !a.others && len(a.values) == 0 }

func (a labelValues) has(v string) bool { return slices.Contains(a.values, v) != a.others }

func (a labelValues) not() labelValues {
	return labelValues{absent: !a.absent, others: !a.others, values: a.values}
}

func (a labelValues) and(b labelValues) labelValues {
	out := labelValues{absent: a.absent && b.absent, others: a.others && b.others}
	for _, v := range slices.Concat(a.values, b.values) {
		if in := a.has(v) && b.has(v); in != out.others && !slices.Contains(out.values, v) {
			out.values = append(out.values, v)
		}
	}
	slices.Sort(out.values)
	return out
}

func (a labelValues) or(b labelValues) labelValues { return a.not().and(b.not()).not() }

func (a labelValues) equal(b labelValues) bool {
	return a.absent == b.absent && a.others == b.others && slices.Equal(a.values, b.values)
}

// isConjunction tells whether requirements can say a: they cannot say that a label
// is absent or one of some values.
func (a labelValues) isConjunction() bool { return !a.absent || a.others || len(a.values) == 0 }

func (r namespaceSet) valuesOf(key string) labelValues {
	for _, l := range r.labels {
		if l.key == key {
			return l.labelValues
		}
	}
	return anything()
}

// with is the set where a label is among those allowed too; false where there
// is no such namespace.
func (r namespaceSet) with(key string, a labelValues) (namespaceSet, bool) {
	a = a.and(r.valuesOf(key))
	out := r.without(key)
	if !a.isAnything() {
		out.labels = append(out.labels, label{key, a})
		slices.SortFunc(out.labels, func(a, b label) int { return cmp.Compare(a.key, b.key) })
	}
	return out, !a.isNothing()
}

func (r namespaceSet) without(key string) namespaceSet {
	r.labels = slices.DeleteFunc(slices.Clone(r.labels), func(l label) bool { return l.key == key })
	return r
}

// hitBy is the part of the set in which an override hits.
func (r namespaceSet) hitBy(o policy.ActionOverride) (namespaceSet, bool) {
	labels, ok := wanted(o)
	for _, l := range labels {
		var some bool
		r, some = r.with(l.key, l.labelValues)
		ok = ok && some
	}
	return r, ok
}

// missedBy is the rest, in parts that exclude each other.
func (r namespaceSet) missedBy(o policy.ActionOverride) []namespaceSet {
	labels, ok := wanted(o)
	if !ok {
		return []namespaceSet{r}
	}
	var out []namespaceSet
	for _, l := range labels {
		if part, some := r.with(l.key, l.not()); some {
			out = append(out, part)
		}
		var some bool
		if r, some = r.with(l.key, l.labelValues); !some {
			break
		}
	}
	return out
}

// wanted is what an override asks of a namespace, each label once; false where it
// never hits.
func wanted(o policy.ActionOverride) (labels []label, ok bool) {
	r, ok := namespaceSet{}, true
	add := func(key string, a labelValues) {
		var some bool
		r, some = r.with(key, a)
		ok = ok && some
	}
	if o.Namespaces != nil && !slices.ContainsFunc(o.Namespaces, native.AnyNamespace) {
		names := slices.DeleteFunc(slices.Clone(o.Namespaces), func(n string) bool { return n == "" })
		add(NameLabel, labelValues{values: slices.Compact(slices.Sorted(slices.Values(names)))})
	}
	if s := o.NamespaceSelector; s != nil {
		for _, p := range s.MatchLabels {
			add(p.Key, labelValues{values: []string{p.Value}})
		}
		for _, e := range s.Expressions {
			add(e.Key, labelValuesOf(e))
		}
	}
	return r.labels, ok
}

func labelValuesOf(e policy.SelectorExpression) labelValues {
	values := slices.Compact(slices.Sorted(slices.Values(e.Values)))
	switch e.Operator {
	case "In":
		return labelValues{values: values}
	case "NotIn":
		return labelValues{absent: true, others: true, values: values}
	case "Exists":
		return labelValues{others: true}
	}
	return labelValues{absent: true} // DoesNotExist
}

// joined puts sets of namespaces of one action together where requirements can say both at
// once, and takes apart what they cannot say.
func joined(rs []namespaceSet) []namespaceSet {
	for again := true; again; {
		again = false
		for i := 0; i < len(rs); i++ {
			for j := i + 1; j < len(rs); j++ {
				if both, ok := rs[i].join(rs[j]); ok {
					rs[i] = both
					rs = slices.Delete(rs, j, j+1)
					j, again = i, true
				}
			}
		}
	}
	var out []namespaceSet
	for _, r := range rs {
		out = append(out, r.conjunctions()...)
	}
	return out
}

// join is both sets in one, where they differ in one label only.
func (r namespaceSet) join(s namespaceSet) (namespaceSet, bool) {
	if r.action != s.action {
		return r, false
	}
	differs := ""
	for _, l := range slices.Concat(r.labels, s.labels) {
		if l.key != differs && !r.valuesOf(l.key).equal(s.valuesOf(l.key)) {
			if differs != "" {
				return r, false
			}
			differs = l.key
		}
	}
	union := r.valuesOf(differs).or(s.valuesOf(differs))
	if !union.isConjunction() {
		return r, false
	}
	out, ok := r.without(differs).with(differs, union)
	return out, ok
}

func (r namespaceSet) conjunctions() []namespaceSet {
	for _, l := range r.labels {
		if !l.isConjunction() {
			absent, _ := r.with(l.key, labelValues{absent: true})
			present, _ := r.with(l.key, labelValues{others: true})
			return append(present.conjunctions(), absent.conjunctions()...)
		}
	}
	return []namespaceSet{r}
}

// selector says the set as a selector of namespaces.
func (r namespaceSet) selector() vap.Selector {
	var out vap.Selector
	for _, l := range r.labels {
		switch {
		case !l.others && l.absent:
			out.Expressions = append(out.Expressions, vap.Requirement{Key: l.key, Operator: "DoesNotExist"})
		case !l.others && len(l.values) == 1:
			out.Labels = append(out.Labels, vap.Label{Key: l.key, Value: l.values[0]})
		case !l.others:
			out.Expressions = append(out.Expressions, vap.Requirement{Key: l.key, Operator: "In", Values: l.values})
		default:
			if !l.absent {
				out.Expressions = append(out.Expressions, vap.Requirement{Key: l.key, Operator: "Exists"})
			}
			if len(l.values) > 0 {
				out.Expressions = append(out.Expressions, vap.Requirement{Key: l.key, Operator: "NotIn", Values: l.values})
			}
		}
	}
	return out
}
