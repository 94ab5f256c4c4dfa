package translate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/policy"
)

// name is the policy's name, with as much after it as tells this object from the
// others of the policy: how the rules were expanded, the kinds, the operations.
func (g group) name(used map[string]bool, o *Options) string {
	if o.Pack == PackMatch {
		return g.packName(used, o)
	}
	u := g.units[0]
	base := u.policy.Name
	if u.policy.Namespaced() {
		base = u.policy.Namespace + "." + base
	}
	if len(g.units) == 1 && len(u.policy.Rules) > 1 {
		base += "-" + strings.ToLower(u.rule.Origin)
	}
	if u.rule.Expansion != "" {
		base += "-" + u.rule.Expansion
	}
	if g.onlyDeletes() && !strings.Contains(base, "delete") {
		base += "-delete"
	}
	name := base
	for _, extra := range []string{g.kindPart(), g.opPart(), strings.ToLower(u.rule.Origin)} {
		if !used[name] {
			return name
		}
		if extra != "" {
			name += "-" + extra
		}
	}
	for i := 2; used[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	return name
}

// onlyDeletes tells of a group about deletions, which a reader would not look for
// below the name of the policy.
func (g group) onlyDeletes() bool {
	return !slices.ContainsFunc(g.targets, func(t placed) bool { return !slices.Equal(t.ops, []operation{"DELETE"}) })
}

// packName says what a pack of several policies holds: its kinds, operations and
// action. It says nothing of the policies, so that it stays when one comes or goes;
// but what no other policy is likely to share is told apart by a hash.
func (g group) packName(used map[string]bool, o *Options) string {
	u := g.units[0]
	parts := append([]string{"kvap"}, g.kindNames()...)
	if ops := strings.ToLower(strings.Join(inOrder(g.targets[0].ops), "-")); ops != "create-update" {
		parts = append(parts, ops)
	}
	parts = append(parts, actionName(u))
	if u.failurePolicy() == string(policy.Ignore) {
		parts = append(parts, "ignore")
	}
	if g.unguarded {
		parts = append(parts, "unguarded")
	}
	if u.isSpecial() {
		parts = append(parts, shortHash(u.attributes(o)))
	}
	if g.alone {
		parts = append(parts, u.policy.Name, strings.ToLower(u.rule.Origin))
	}
	if g.half != "" {
		parts = append(parts, g.half)
	}
	name := strings.Join(parts, "-")
	if u.policy.Namespaced() {
		name = u.policy.Namespace + "." + name
	}
	for salt := g.key(o); used[name]; salt += "+" {
		name = strings.Join(parts, "-") + "-" + shortHash(salt)
	}
	return name
}

func actionName(u unit) string {
	switch {
	case u.action() == policy.Enforce:
		return "deny"
	case u.policy.EmitWarning:
		return "warn"
	}
	return "audit"
}

// isSpecial tells of a unit with something that a policy object has once, and that
// hardly any other policy has.
func (u unit) isSpecial() bool {
	return u.params.key() != "" || u.native.own() != "" || len(u.policy.MatchConditions) > 0 || len(overridesOf(u.policy, u.rule)) > 0
}

// key is what tells the group from others.
func (g group) key(o *Options) string {
	parts := []string{g.units[0].attributes(o)}
	for _, t := range g.targets {
		parts = append(parts, t.key(), strings.Join(inOrder(t.ops), ","))
	}
	return strings.Join(parts, "\x00")
}

// kindNames are the kinds of objects that the group is about, in few words.
func (g group) kindNames() []string {
	var names []string
	for _, t := range g.targets {
		resource, sub, _ := strings.Cut(strings.ToLower(t.resource), "/")
		name := cmp.Or(sub, resource)
		if strings.Contains(name, "*") {
			name = "all"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	const few = 3
	switch {
	case slices.Equal(slices.Sorted(slices.Values(names)), []string{"daemonsets", "deployments", "jobs", "replicasets", "statefulsets"}):
		return []string{"workloads"}
	case len(names) > few:
		return append(names[:few-1:few-1], "and", strconv.Itoa(len(names)-few+1), "more")
	}
	return names
}

// shortHash is six digits that tell s from most others.
func shortHash(s string) string {
	digits := strconv.FormatUint(uint64(hashOf(s)&0xffffff), 16)
	return strings.Repeat("0", 6-len(digits)) + digits
}

func (g group) kindPart() string {
	if len(g.targets) != 1 {
		return ""
	}
	r := g.targets[0].resource
	if strings.Contains(r, "*") {
		return "all"
	}
	return strings.ReplaceAll(strings.ToLower(r), "/", "-")
}

func (g group) opPart() string {
	if g.onlyDeletes() {
		return ""
	}
	return strings.ToLower(strings.Join(inOrder(g.targets[0].ops), "-"))
}
