package pack

import (
	"encoding/hex"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
)

// name is the policy's name, with as much after it as tells this object from the
// others of the policy: how the rules were expanded, the kinds, the operations.
func (g group) name(used map[string]bool, o Options) string {
	if o.ByKind {
		return g.packName(used, o)
	}
	u := g.units[0]
	base := u.Policy.Name
	if u.Policy.Namespaced() {
		base = u.Policy.Namespace + "." + base
	}
	if len(g.units) == 1 && len(u.Policy.Rules) > 1 {
		base += "-" + strings.ToLower(u.Rule.Origin)
	} else if g.part != "" {
		base += "-" + g.part
	}
	if u.Rule.Expansion != "" {
		base += "-" + u.Rule.Expansion
	}
	if g.onlyDeletes() && !strings.Contains(base, "delete") {
		base += "-delete"
	}
	name := base
	for _, extra := range []string{g.kindPart(), g.opPart(), strings.ToLower(u.Rule.Origin)} {
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
	return !slices.ContainsFunc(g.targets, func(t placed) bool { return !slices.Equal(t.ops, []native.Operation{"DELETE"}) })
}

// packName says what a pack of several policies holds: the kind, the operations and
// the action, and of many alike the part that it is. It says nothing of the policies,
// so that it stays when one comes or goes. Where words would say the same of two
// packs, a hash tells them apart.
func (g group) packName(used map[string]bool, o Options) string {
	u, t := g.units[0], g.targets[0]
	parts := []string{"kvap", shortName(t.Target)}
	if ops := strings.ToLower(string(t.ops[0])); classOf(t.ops[0]) != native.Create {
		parts = append(parts, ops)
	}
	parts = append(parts, actionName(u))
	if u.failurePolicy() == string(policy.Ignore) {
		parts = append(parts, "ignore")
	}
	if g.unguarded {
		parts = append(parts, "unguarded")
	}
	if u.Params != nil {
		parts = append(parts, u.Params.Namespace, u.Params.Name)
	}
	if t.KindWild != "" || len(u.Policy.MatchConditions) > 0 || len(native.OverridesOf(u.Policy, u.Rule)) > 0 {
		parts = append(parts, shortHash(g.key(o)))
	}
	if g.alone || u.CEL.Own() != "" {
		parts = append(parts, u.Policy.Name, strings.ToLower(u.Rule.Origin))
	}
	parts = append(parts, u.Reaches...)
	if u.Policy.Namespaced() {
		parts[0] = u.Policy.Namespace + "." + parts[0]
	}
	base := hyphened(append(parts, g.part)...)
	name := base
	for salt := g.key(o); used[name]; salt += "+" {
		name = hyphened(base, shortHash(salt))
	}
	return name
}

// NameOfPack is the name of a pack of rules that change objects of a kind; the words say what they
// have in common, and key what no words say.
func NameOfPack(t native.Target, used map[string]bool, key string, words ...string) string {
	parts := append([]string{"kvap", shortName(t)}, words...)
	if key != "" {
		parts = append(parts, shortHash(key))
	}
	base := hyphened(parts...)
	name := base
	for i := 2; used[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	used[name] = true
	return name
}

// hyphened are the parts that there are.
func hyphened(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "-")
}

func actionName(u Unit) string {
	switch {
	case u.action() == policy.Enforce && u.Policy.EmitWarning:
		return "deny-warn"
	case u.action() == policy.Enforce:
		return "deny"
	case u.Policy.EmitWarning:
		return "warn"
	}
	return "audit"
}

// key is what tells the group from others.
func (g group) key(o Options) string {
	return g.units[0].attributes(o) + "\x00" + g.targets[0].Key() + "\x00" + string(classOf(g.targets[0].ops[0]))
}

// shortName is the resource as people say it: of Kubernetes' own groups without the
// group, and without the version where that is the first; of others without the
// version where that is any.
func shortName(t native.Target) string {
	name := strings.NewReplacer("/", "-", "*", "all").Replace(strings.ToLower(t.Resource))
	group, version, usual := strings.ToLower(t.Group), strings.ToLower(t.Version), "v1"
	switch {
	case group == "*" && t.Guessed: // a kind that is not known, so that no other is called alike
		usual = "*"
	case group == "*":
		name, usual = name+"-of-any-group", "*"
	case strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io"):
		name, usual = name+"."+group, "*"
	}
	switch version {
	case usual:
		return name
	case "*":
		return name + "-of-any-version"
	}
	return name + "-" + version
}

// shortHash is six digits that tell s from most others.
func shortHash(s string) string {
	h := fnv.New32a()
	io.WriteString(h, s+"\x00")
	return hex.EncodeToString(h.Sum(nil)[1:])
}

func (g group) kindPart() string {
	if len(g.targets) != 1 {
		return ""
	}
	r := g.targets[0].Resource
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
