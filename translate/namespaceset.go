package translate

import (
	"cmp"
	"slices"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// regionsOf are regions that exclude each other and cover all namespaces, each
// with its action.
func regionsOf(base policy.Action, overrides []policy.ActionOverride) []region {
	var out []region
	rest := []region{{}}
	for _, o := range overrides {
		var missed []region
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

// A region is the namespaces whose labels are all among the allowed ones. A label
// that is not listed may be anything.
type region struct {
	action policy.Action
	labels []label // by key
}

type label struct {
	key string
	allowed
}

// allowed is a set of values of a label. Only finite sets of values and what they
// leave over come up; that a label is absent is a value of its own.
type allowed struct {
	absent bool
	others bool // all values but the listed, and not only the listed
	values []string
}

func anything() allowed { return allowed{absent: true, others: true} }

func (a allowed) isAnything() bool { return a.absent && a.others && len(a.values) == 0 }

func (a allowed) isNothing() bool { return !a.absent && !a.others && len(a.values) == 0 }

func (a allowed) has(v string) bool { return slices.Contains(a.values, v) != a.others }

func (a allowed) not() allowed {
	return allowed{absent: !a.absent, others: !a.others, values: a.values}
}

func (a allowed) and(b allowed) allowed {
	out := allowed{absent: a.absent && b.absent, others: a.others && b.others}
	for _, v := range slices.Concat(a.values, b.values) {
		if in := a.has(v) && b.has(v); in != out.others && !slices.Contains(out.values, v) {
			out.values = append(out.values, v)
		}
	}
	slices.Sort(out.values)
	return out
}

func (a allowed) or(b allowed) allowed { return a.not().and(b.not()).not() }

func (a allowed) equal(b allowed) bool {
	return a.absent == b.absent && a.others == b.others && slices.Equal(a.values, b.values)
}

// isConjunction tells whether requirements can say a: they cannot say that a label
// is absent or one of some values.
func (a allowed) isConjunction() bool { return !a.absent || a.others || len(a.values) == 0 }

func (r region) at(key string) allowed {
	for _, l := range r.labels {
		if l.key == key {
			return l.allowed
		}
	}
	return anything()
}

// with is the region where a label is among those allowed too; false where there
// is no such namespace.
func (r region) with(key string, a allowed) (region, bool) {
	a = a.and(r.at(key))
	out := r.without(key)
	if !a.isAnything() {
		out.labels = append(out.labels, label{key, a})
		slices.SortFunc(out.labels, func(a, b label) int { return cmp.Compare(a.key, b.key) })
	}
	return out, !a.isNothing()
}

func (r region) without(key string) region {
	r.labels = slices.DeleteFunc(slices.Clone(r.labels), func(l label) bool { return l.key == key })
	return r
}

// hitBy is the part of the region in which an override hits.
func (r region) hitBy(o policy.ActionOverride) (region, bool) {
	labels, ok := wanted(o)
	for _, l := range labels {
		var some bool
		r, some = r.with(l.key, l.allowed)
		ok = ok && some
	}
	return r, ok
}

// missedBy is the rest, in parts that exclude each other.
func (r region) missedBy(o policy.ActionOverride) []region {
	labels, ok := wanted(o)
	if !ok {
		return []region{r}
	}
	var out []region
	for _, l := range labels {
		if part, some := r.with(l.key, l.not()); some {
			out = append(out, part)
		}
		var some bool
		if r, some = r.with(l.key, l.allowed); !some {
			break
		}
	}
	return out
}

// wanted is what an override asks of a namespace, each label once; false where it
// never hits.
func wanted(o policy.ActionOverride) (labels []label, ok bool) {
	r, ok := region{}, true
	add := func(key string, a allowed) {
		var some bool
		r, some = r.with(key, a)
		ok = ok && some
	}
	if o.Namespaces != nil && !slices.ContainsFunc(o.Namespaces, anyNamespace) {
		names := slices.DeleteFunc(slices.Clone(o.Namespaces), func(n string) bool { return n == "" })
		add(nameLabel, allowed{values: slices.Compact(slices.Sorted(slices.Values(names)))})
	}
	if s := o.NamespaceSelector; s != nil {
		for _, p := range s.MatchLabels {
			add(p.Key, allowed{values: []string{p.Value}})
		}
		for _, e := range s.Expressions {
			add(e.Key, allowedBy(e))
		}
	}
	return r.labels, ok
}

func allowedBy(e policy.SelectorExpression) allowed {
	values := slices.Compact(slices.Sorted(slices.Values(e.Values)))
	switch e.Operator {
	case "In":
		return allowed{values: values}
	case "NotIn":
		return allowed{absent: true, others: true, values: values}
	case "Exists":
		return allowed{others: true}
	}
	return allowed{absent: true} // DoesNotExist
}

// joined puts regions of one action together where requirements can say both at
// once, and takes apart what they cannot say.
func joined(rs []region) []region {
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
	var out []region
	for _, r := range rs {
		out = append(out, r.conjunctions()...)
	}
	return out
}

// join is both regions in one, where they differ in one label only.
func (r region) join(s region) (region, bool) {
	if r.action != s.action {
		return r, false
	}
	differs := ""
	for _, l := range slices.Concat(r.labels, s.labels) {
		if l.key != differs && !r.at(l.key).equal(s.at(l.key)) {
			if differs != "" {
				return r, false
			}
			differs = l.key
		}
	}
	union := r.at(differs).or(s.at(differs))
	if !union.isConjunction() {
		return r, false
	}
	out, ok := r.without(differs).with(differs, union)
	return out, ok
}

func (r region) conjunctions() []region {
	for _, l := range r.labels {
		if !l.isConjunction() {
			absent, _ := r.with(l.key, allowed{absent: true})
			present, _ := r.with(l.key, allowed{others: true})
			return append(present.conjunctions(), absent.conjunctions()...)
		}
	}
	return []region{r}
}

// selector says the region as a selector of namespaces.
func (r region) selector() vap.Selector {
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
