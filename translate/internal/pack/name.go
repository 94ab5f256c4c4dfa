package pack

import (
	"encoding/hex"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// name is the policy's name, with as much after it as tells this object from the
// others of the policy, which have the names that are used: the rule, the resources, the
// operations.
func (g group) name(used map[string]group, o Options) string {
	if o.ByKind {
		return g.packName(used, o)
	}
	u := g.units[0]
	base := u.Policy.Name
	if len(g.units) == 1 && len(u.Policy.Rules) > 1 {
		base = continued(base, strings.ToLower(u.Rule.Origin))
	} else if g.part != "" {
		base += "-" + g.part
	}
	if u.Policy.Namespaced() {
		base = u.Policy.Namespace + "." + base
	}
	if u.Rule.Expansion != "" {
		base = hyphened(base, g.resourcePart())
	}
	if g.onlyDeletes() && !strings.Contains(base, "delet") {
		base += "-deletions"
	}
	name := base
	for _, part := range []func(group) string{group.resourcePart, group.operationPart, group.rulePart} {
		other, taken := used[name]
		if !taken {
			return name
		}
		if own := part(g); own != part(other) {
			name = hyphened(name, own)
		}
	}
	for i := 2; isUsed(used, name); i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	return name
}

// continued is a name and more of it, once where that begins with the name.
func continued(name, more string) string {
	if more == name || strings.HasPrefix(more, name+"-") {
		return more
	}
	return name + "-" + more
}

func isUsed(used map[string]group, name string) bool {
	_, ok := used[name]
	return ok
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
func (g group) packName(used map[string]group, o Options) string {
	u, t := g.units[0], g.targets[0]
	about := g.family
	if about == "" {
		about = shortName(t.Target)
	}
	parts := []string{"kvap", about}
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
		parts = append(parts, u.Params.Namespace+"."+u.Params.Name) // no namespace has a dot
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
	for salt := g.key(o); isUsed(used, name); salt += "+" {
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
	about := g.family
	if about == "" {
		about = g.targets[0].Key()
	}
	return g.units[0].attributes(o) + "\x00" + about + "\x00" + string(classOf(g.targets[0].ops[0]))
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

// resourcePart is what the group is about: a resource or two, or those that have pods.
func (g group) resourcePart() string {
	var names []string
	pods, havePods := false, true
	for _, t := range g.targets {
		whole, _, isPart := strings.Cut(t.Resource, "/")
		if isPart && g.about(whole) {
			continue
		}
		pods = pods || t.Parent.Kind == "Pod"
		havePods = havePods && native.PodOf(t.Target) != nil
		names = append(names, strings.NewReplacer("*/*", "all", "/", "-", "*", "all").Replace(strings.ToLower(t.Resource)))
	}
	switch {
	case len(names) <= 2:
		return hyphened(names...)
	case havePods && pods:
		return "workloads"
	case havePods, g.units[0].Rule.Expansion != "":
		return "controllers"
	}
	return ""
}

// about tells that the group is about a resource.
func (g group) about(resource string) bool {
	return slices.ContainsFunc(g.targets, func(t placed) bool { return t.Resource == resource })
}

// operationPart is what happens to what the group is about.
func (g group) operationPart() string {
	words := map[string]string{"CREATE": "creations", "UPDATE": "updates", "DELETE": "deletions", "CONNECT": "connections"}
	var parts []string
	for _, op := range inOrder(g.targets[0].ops) {
		parts = append(parts, words[op])
	}
	return hyphened(parts...)
}

func (g group) rulePart() string { return strings.ToLower(g.units[0].Rule.Origin) }

// Groups are split by the names of policies and rules as the volumes of a dictionary
// are, a to m and n to z, but where the volumes end does not depend on the words:
// so a rule that comes, goes or changes moves no other, unless its own volume
// becomes too thick.

// letters are the names that begin alike and go on with one of some symbols.
type letters struct {
	prefix      string
	first, last int
}

// The symbols are what is no letter or digit, or the end; digits; letters.
const lastSymbol = 36

func symbolAt(name string, i int) int {
	if i >= len(name) {
		return 0
	}
	switch c := name[i]; {
	case c >= '0' && c <= '9':
		return int(c-'0') + 1
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 11
	}
	return 0
}

// symbols are how symbols are written.
const symbols = "-0123456789abcdefghijklmnopqrstuvwxyz"

// String is, for instance, disallow-a-to-h.
func (l letters) String() string {
	symbol := func(i int) string { return symbols[max(1, i) : max(1, i)+1] } // the least that can be written
	prefix := strings.Trim(l.prefix, "-")
	switch {
	case l.first == 0 && l.last == lastSymbol:
		return prefix
	case l.first == l.last:
		return hyphened(prefix, symbol(l.first))
	case l.first == 0:
		return hyphened(prefix, "up-to", symbol(l.last))
	case l.last == lastSymbol:
		return hyphened(prefix, "from", symbol(l.first))
	}
	return hyphened(prefix, symbol(l.first), "to", symbol(l.last))
}

// split halves the range of symbols until each part fits. Names that are alike go on
// with the next symbol; those that are the same stay together.
func (g group) split(o Options, l letters) []group {
	if g.part = l.String(); g.fits(o) {
		return []group{g}
	}
	return g.halves(o, l)
}

// halves are the parts of a group that does not fit. Where all are in one half, it is
// not asked again whether they fit.
func (g group) halves(o Options, l letters) []group {
	if l.first == l.last {
		if !slices.ContainsFunc(g.units, func(u Unit) bool { return len(u.splitName(o)) > len(l.prefix) }) { // they are the same
			g.part = l.String()
			return []group{g}
		}
		return g.halves(o, letters{prefix: l.prefix + symbols[l.first:l.first+1], last: lastSymbol})
	}
	middle := (l.first + l.last) / 2
	isLow := func(u Unit) bool { return symbolAt(u.splitName(o), len(l.prefix)) <= middle }
	isHigh := func(u Unit) bool { return !isLow(u) }
	below, above := letters{l.prefix, l.first, middle}, letters{l.prefix, middle + 1, l.last}
	switch {
	case !slices.ContainsFunc(g.units, isHigh):
		return g.halves(o, below)
	case !slices.ContainsFunc(g.units, isLow):
		return g.halves(o, above)
	}
	low := g.with(slices.DeleteFunc(slices.Clone(g.units), isHigh))
	high := g.with(slices.DeleteFunc(slices.Clone(g.units), isLow))
	return append(low.split(o, below), high.split(o, above)...)
}

// splitName is what a group is split by.
func (u Unit) splitName(o Options) string {
	if o.ByKind {
		return inSymbols(native.MemberName(u.Policy) + "/" + u.name())
	}
	return inSymbols(u.Rule.Name)
}

// inSymbols is s in symbols.
func inSymbols(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && symbolAt(string(r), 0) > 0 {
			return r
		}
		return '-'
	}, strings.ToLower(s))
}

// Describe gives an object what its policies say about themselves to people: title,
// category, severity and description, and the labels of whoever owns them. Of
// several policies only what they all say holds for the object.
func Describe(d *vap.Draft, policies ...*policy.Policy) {
	d.Annotations, d.Labels = nil, nil
	for i, p := range policies {
		annotations, labels := pick(p.Annotations, describes), pick(p.Labels, owns)
		for k, v := range labels {
			if len(validation.IsQualifiedName(k))+len(validation.IsValidLabelValue(v)) > 0 { // which no cluster takes
				delete(labels, k)
			}
		}
		if i == 0 {
			d.Annotations, d.Labels = annotations, labels
			continue
		}
		d.Annotations, d.Labels = common(d.Annotations, annotations), common(d.Labels, labels)
	}
}

// describes tells of the annotations that Kyverno's documentation gives policies, and of the one
// that accepts what is found of a policy and of what is made of it.
func describes(key string) bool {
	switch key {
	case "policies.kyverno.io/title", "policies.kyverno.io/category", "policies.kyverno.io/severity", "policies.kyverno.io/description", "kvap.dev/ignore":
		return true
	}
	return false
}

// owns tells of labels that say whose an object is. Those by which a tool knows
// what it has applied itself are not: it would take the objects for its own, and
// may delete them.
func owns(key string) bool {
	switch key {
	case "app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "helm.sh/chart":
		return false
	}
	domain, _, _ := strings.Cut(key, "/")
	for _, tool := range []string{"argoproj.io", "fluxcd.io", "cattle.io", "kvap.dev", "kyverno.io", "kpt.dev", "k14s.io"} {
		if domain == tool || strings.HasSuffix(domain, "."+tool) {
			return false
		}
	}
	return true
}

func pick(m map[string]string, keep func(string) bool) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		if keep(k) {
			out[k] = v
		}
	}
	return out
}

// common is what a and b both say.
func common(a, b map[string]string) map[string]string {
	return pick(a, func(k string) bool { v, ok := b[k]; return ok && v == a[k] })
}
