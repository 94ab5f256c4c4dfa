package diff

import (
	"maps"
	"reflect"
	"slices"

	"github.com/kvap/kvap/policy"
)

// asWritten tells whether both sides are written the same, with the same exceptions and params.
func asWritten(old, new *Side, p pairing) bool {
	if len(p.old) != 1 || len(p.new) != 1 || len(p.old[0].natives) != len(p.new[0].natives) {
		return false
	}
	a, b := p.old[0], p.new[0]
	for i, n := range a.natives {
		m := b.natives[i]
		x, y := old.Deployed.BindingsOf(n.Name), new.Deployed.BindingsOf(m.Name)
		if !reflect.DeepEqual(n.Spec, m.Spec) || len(x) != len(y) {
			return false
		}
		for k := range x {
			if !reflect.DeepEqual(x[k].Spec, y[k].Spec) {
				return false
			}
		}
	}
	return slices.Equal(sourcesOf(a.policies), sourcesOf(b.policies)) && sameExceptions(old, new) &&
		reflect.DeepEqual(old.Params, new.Params) && reflect.DeepEqual(a.mutations, b.mutations)
}

func sourcesOf(list []*policy.Policy) (out []string) {
	for _, one := range list {
		out = append(out, string(policy.Marshal(one.Source)))
	}
	return out
}

func sameExceptions(old, new *Side) bool {
	texts := func(s *Side) (out []string) {
		for _, e := range s.Exceptions {
			out = append(out, string(policy.Marshal(e.Source)))
		}
		return out
	}
	return slices.Equal(texts(old), texts(new))
}

// changed is a pairing of what two policies do not write the same of, and the names of the rules that
// they do: where all else of them is the same, and no rule depends on the others.
func changed(old, new *Side, p pairing) (rest pairing, same []string) {
	if len(p.old) != 1 || len(p.new) != 1 || !sameExceptions(old, new) {
		return p, nil
	}
	a, b := p.old[0], p.new[0]
	if !ofRules(a) || !ofRules(b) || !maps.Equal(frame(a.policies[0]), frame(b.policies[0])) {
		return p, nil
	}
	for _, r := range a.policies[0].Rules {
		if slices.ContainsFunc(b.policies[0].Rules, func(o *policy.Rule) bool {
			return r.Validate != nil && o.Name == r.Name && string(policy.Marshal(o.Source)) == string(policy.Marshal(r.Source))
		}) {
			same = append(same, r.Name)
		}
	}
	if len(same) == 0 || len(same) == len(a.policies[0].Rules) || len(same) == len(b.policies[0].Rules) {
		return p, nil
	}
	x, y := without(a, same), without(b, same)
	if x == nil || y == nil {
		return p, nil
	}
	return pairing{[]*group{x}, []*group{y}, p.by}, same
}

// ofRules tells of a group that is one policy of rules, of which each judges by itself.
func ofRules(g *group) bool {
	return len(g.policies) == 1 && len(g.natives)+len(g.mutations.Policies) == 0 && !g.policies[0].InCEL() && !g.policies[0].ApplyOne
}

// frame is a policy but for its rules, as texts by key.
func frame(p *policy.Policy) map[string]string {
	out := map[string]string{}
	for _, f := range p.Source.Fields {
		if f.Key != "spec" {
			out[f.Key] = string(policy.Marshal(f.Value))
			continue
		}
		for _, of := range f.Value.Fields {
			if of.Key != "rules" {
				out["spec "+of.Key] = string(policy.Marshal(of.Value))
			}
		}
	}
	return out
}

// without is a group without some of its rules; nil where such a policy cannot be read.
func without(g *group, rules []string) *group {
	text := policy.Marshal(g.policies[0].Only(func(r *policy.Rule) bool { return !slices.Contains(rules, r.Origin) }))
	file, found := policy.Parse(g.pos.File, text)
	if found.HasErrors() || len(file.Policies) != 1 {
		return nil
	}
	out := *g
	out.policies = file.Policies
	out.rules = slices.DeleteFunc(slices.Clone(g.rules), func(s string) bool { return slices.Contains(rules, s) })
	return &out
}
