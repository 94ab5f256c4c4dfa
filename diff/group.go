package diff

import (
	"cmp"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// A Side is what requests are judged by.
type Side struct {
	Policies   []*policy.Policy
	Exceptions []*policy.Exception
	Deployed   judge.Deployed
	Mutations  judge.DeployedMutations
	// Unbound are native policies whose bindings are not there: they count everywhere, but where the
	// other side binds them, and what follows from a violation is not known.
	Unbound []string
	// Cleanups and Unread are not judged: they are the same where they are written the same.
	Cleanups []*policy.Cleanup
	Unread   []*policy.Unread
	// Params are those of the native policies.
	Params []map[string]any
}

// boundOf are those of some names that the side has a bound policy of.
func (s *Side) boundOf(names []string) (out []string) {
	for _, name := range names {
		isBound := func(have string) bool { return have == name && !slices.Contains(s.Unbound, name) }
		if slices.ContainsFunc(s.Deployed.Policies, func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool { return isBound(p.Name) }) ||
			slices.ContainsFunc(s.Mutations.Policies, func(p *admissionregistrationv1.MutatingAdmissionPolicy) bool { return isBound(p.Name) }) {
			out = append(out, name)
		}
	}
	return out
}

// without is the side without native policies that enforce nothing.
func (s Side) without(names []string) Side {
	s.Deployed.Policies = slices.DeleteFunc(slices.Clone(s.Deployed.Policies), func(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool { return slices.Contains(names, p.Name) })
	s.Mutations.Policies = slices.DeleteFunc(slices.Clone(s.Mutations.Policies), func(p *admissionregistrationv1.MutatingAdmissionPolicy) bool { return slices.Contains(names, p.Name) })
	return s
}

// mutations is the name of all that a policy changes objects by, as if it were one rule.
const mutations = "mutations"

// A group is what a side has of one policy: as it is written, or what was made from it.
type group struct {
	name      string
	pos       diag.Pos
	policies  []*policy.Policy
	natives   []native
	mutations judge.DeployedMutations
	rules     []string // that can be judged
	left      []Left   // those that cannot
}

// A native is a native policy, with its source map.
type native struct {
	*admissionregistrationv1.ValidatingAdmissionPolicy
	text vap.Translation
	made bool // by kvap
}

// Left is a rule that is not judged, and why.
type Left struct {
	Policy, Rule, Why string
	Pos               diag.Pos
	written           string
}

// A grouping puts a side together by policy.
type grouping struct{ groups []*group }

func (g *grouping) of(name string, pos diag.Pos) *group {
	for _, have := range g.groups {
		if have.name == name {
			return have
		}
	}
	g.groups = append(g.groups, &group{name: name, pos: pos})
	return g.groups[len(g.groups)-1]
}

// groups are the policies of the side, as it names them.
func (s *Side) groups() []*group {
	g := &grouping{}
	for _, p := range s.Policies {
		g.of(p.FullName(), p.Pos).written(p)
	}
	for _, p := range s.Deployed.Policies {
		text, made := judge.TranslationOf(p)
		n := native{p, text, made}
		for _, m := range text.Members {
			of := g.of(m.Policy, s.Deployed.Pos(p))
			of.rule(cmp.Or(m.Origin, m.Rule))
			if !slices.ContainsFunc(of.natives, func(have native) bool { return have.Name == p.Name }) {
				of.natives = append(of.natives, n)
			}
		}
	}
	for _, p := range s.Mutations.Policies {
		names := []string{p.Name}
		if t, ok, err := vap.TranslationOf(p.Annotations); err == nil && ok && len(t.Members) > 0 {
			names = nil
			for _, m := range t.Members {
				names = union(names, []string{m.Policy})
			}
		}
		for _, name := range names {
			of := g.of(name, diag.Pos{})
			of.rule(mutations)
			one := s.Mutations.Named(p.Name)
			of.mutations.Policies = append(of.mutations.Policies, one.Policies...)
			of.mutations.Bindings = append(of.mutations.Bindings, one.Bindings...)
		}
	}
	return g.groups
}

func (g *group) rule(name string) {
	if !slices.Contains(g.rules, name) {
		g.rules = append(g.rules, name)
	}
}

// aside are what a side has besides what requests are judged by.
func (s *Side) aside() (out []Left) {
	for _, c := range s.Cleanups {
		out = append(out, Left{c.Name, c.Name, "deletes on a schedule", c.Pos, string(policy.Marshal(c.Source))})
	}
	for _, u := range s.Unread {
		out = append(out, Left{u.Name, u.Name, "is of a kind that is not judged", u.Pos, string(policy.Marshal(u.Source))})
	}
	return out
}

// written adds a policy as it is written.
func (g *group) written(p *policy.Policy) {
	g.policies = append(g.policies, p)
	around := frame(p)
	leave := func(rule string, pos diag.Pos, source *policy.Node, why string) {
		text := string(policy.Marshal(source))
		for _, key := range slices.Sorted(maps.Keys(around)) {
			text += key + "\n" + around[key]
		}
		g.left = append(g.left, Left{Policy: g.name, Rule: rule, Why: why, Pos: pos, written: text})
	}
	switch {
	case p.Validating != nil && p.Validating.Images != nil:
		leave(p.Name, p.Pos, p.Source, "verifies images")
	case p.Validating != nil && p.Validating.Mode == "JSON":
		leave(p.Name, p.Pos, p.Source, "judges documents that are no objects of a cluster")
	case p.Validating != nil:
		g.rule(p.Name)
	case p.Mutating != nil && !p.Mutating.Existing:
		g.rule(mutations)
	case p.InCEL():
		leave(p.Name, p.Pos, p.Source, "starts work besides answering the request")
	}
	for _, r := range p.Rules {
		switch {
		case r.Invalid:
			leave(r.Name, r.Pos, r.Source, "cannot be read")
		case r.StartsWork():
			leave(r.Name, r.Pos, r.Source, "starts work besides answering the request")
		case r.Validate != nil:
			g.rule(r.Name)
		case r.Mutate != nil:
			g.rule(mutations)
		default:
			leave(r.Name, r.Pos, r.Source, "verifies images")
		}
	}
}
