package registration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/policy"
)

// What API servers are told of the policies is bounded, because they take objects of about
// 1.5 MB, and evaluate each match condition on their own time. Two objects of a shard's size are
// less than that: while entries move, one object has what it had beside what it is to have.
const (
	maxShard     = 640 << 10 // bytes of an object, as JSON
	maxNamespace = 64 << 10  // bytes for the policies of a namespace
	// maxConditioned is how many entries with match conditions a namespace has for each verb:
	// API servers may spend a budget of their own on each.
	maxConditioned = 8
	// perEntry is what the API server notes of each entry: who has written which field.
	perEntry = 1 << 10
)

// A candidate is a policy that has something to judge.
type candidate struct {
	*policy.Policy
	route   Route
	targets []ruleTarget
}

// A routeGroup is the policies of one namespace, or of the cluster, that share a route.
type routeGroup struct {
	Route
	policies []*policy.Policy
	targets  []ruleTarget
}

// An entry is one of a configuration.
type entry struct {
	Route
	shard   int
	webhook admissionregistrationv1.ValidatingWebhook // in the form of what validates
	names   []string                                  // of the namespaces whose policies it is for
}

// A registry gathers entries, within the bounds of the objects.
type registry struct {
	options  Options
	entries  map[string]*entry
	used     map[string]int // bytes, by kind and shard
	problems []Problem
}

// entriesOf are the entries for policies, by name. Policies that ask for the same share one.
func entriesOf(policies []*policy.Policy, kinds Kinds, o Options) ([]entry, []Problem) {
	r := &registry{options: o, entries: map[string]*entry{}, used: map[string]int{}}
	for _, verb := range []Verb{Validate, Mutate} {
		var ofCluster []candidate
		local := map[string][]candidate{}
		for _, c := range r.candidates(policies, verb, kinds) {
			if c.route.Local {
				local[c.Namespace] = append(local[c.Namespace], c)
			} else {
				ofCluster = append(ofCluster, c)
			}
		}
		for _, g := range groupsOf(ofCluster) {
			r.add("", []*routeGroup{g})
		}
		groups, weights := map[string][]*routeGroup{}, map[string]int{}
		for _, namespace := range slices.Sorted(maps.Keys(local)) {
			groups[namespace] = groupsOf(r.within(local[namespace]))
			for _, g := range groups[namespace] {
				weights[namespace] += r.weight(g)
			}
		}
		names := slices.SortedFunc(maps.Keys(groups), func(a, b string) int { return cmp.Or(cmp.Compare(weights[a], weights[b]), cmp.Compare(a, b)) })
		for _, namespace := range names { // the smallest first: none keeps out those that ask for less
			r.add(namespace, groups[namespace])
		}
	}
	out := make([]entry, 0, len(r.entries))
	for _, e := range r.entries {
		if e.Local {
			slices.Sort(e.names)
			e.webhook.NamespaceSelector.MatchExpressions = append(inNamespaces(e.names).MatchExpressions, e.webhook.NamespaceSelector.MatchExpressions...)
		}
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Compare(a.webhook.Name, b.webhook.Name) })
	return out, r.problems
}

// candidates are the policies of a verb of which API servers may be told.
func (r *registry) candidates(policies []*policy.Policy, verb Verb, kinds Kinds) (out []candidate) {
	for _, p := range policies {
		if verb == Validate && !Validates(p) || verb == Mutate && !Mutates(p) {
			continue
		}
		found, missing := ruleTargets(p, verb, kinds)
		for _, kind := range missing {
			r.problems = append(r.problems, Problem{p, "the cluster serves no kind " + kind + "; it is left out until it does", false, true})
		}
		if p.FailurePolicy == policy.Fail {
			if why := lockup(found); why != "" {
				r.leaveOut(p, why+"; set its failurePolicy to Ignore")
				continue
			}
			if why := risk(found); why != "" {
				r.problems = append(r.problems, Problem{p, why, false, false})
			}
		}
		if len(found) == 0 {
			continue
		}
		conditions := r.options.conditionsOf(p)
		one := candidate{p, routeOf(p, verb, conditions.dear), found}
		if n, most := bytesOf(one.route.conditions()), one.most(); n > most {
			r.leaveOut(p, fmt.Sprintf("its match conditions take %d bytes of the webhook's configuration; %d are allowed", n, most))
			continue
		}
		if conditions.wrong != "" {
			r.leaveOut(p, conditions.wrong)
			continue
		}
		if conditions.dear {
			if conditions.authorizer {
				r.leaveOut(p, "its match conditions ask the authorizer, which costs API servers too much for a policy of a namespace")
				continue
			}
			r.problems = append(r.problems, Problem{p, "its match conditions may cost API servers too much, which send what they keep away; the webhook evaluates them", false, false})
		}
		out = append(out, one)
	}
	return out
}

func (r *registry) leaveOut(p *policy.Policy, why string) {
	r.problems = append(r.problems, Problem{p, "the policy is left out: " + why, true, false})
}

// most is how many bytes the policy may take.
func (c candidate) most() int {
	if c.route.Local {
		return maxNamespace
	}
	return maxShard
}

// within are the policies of a namespace that its share has room for, the smallest first.
func (r *registry) within(list []candidate) (out []candidate) {
	weights := map[*policy.Policy]int{}
	for _, c := range list {
		weights[c.Policy] = bytesOf(rules(c.targets)) + bytesOf(c.route.conditions())
	}
	inTurn := slices.SortedFunc(slices.Values(list), func(a, b candidate) int {
		return cmp.Or(cmp.Compare(weights[a.Policy], weights[b.Policy]), cmp.Compare(a.FullName(), b.FullName()))
	})
	sum, conditioned := 0, map[string]bool{}
	for _, c := range inTurn {
		path := c.route.Path()
		if len(c.route.Conditions) > 0 && !conditioned[path] && len(conditioned) == maxConditioned {
			r.leaveOut(c.Policy, fmt.Sprintf("policies of the namespace %s have %d different sets of match conditions already; more are not allowed", c.Namespace, maxConditioned))
			continue
		}
		if sum += weights[c.Policy]; sum > maxNamespace {
			r.leaveOut(c.Policy, fmt.Sprintf("with it the policies of the namespace %s would take %d bytes of the webhook's configuration; %d are allowed", c.Namespace, sum, maxNamespace))
			sum -= weights[c.Policy]
			continue
		}
		if len(c.route.Conditions) > 0 {
			conditioned[path] = true
		}
		out = append(out, c)
	}
	return out
}

// groupsOf are policies by their routes, in the order of these.
func groupsOf(list []candidate) []*routeGroup {
	byPath := map[string]*routeGroup{}
	for _, c := range list {
		g := byPath[c.route.Path()]
		if g == nil {
			g = &routeGroup{Route: c.route}
			byPath[c.route.Path()] = g
		}
		g.policies, g.targets = append(g.policies, c.Policy), append(g.targets, c.targets...)
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b *routeGroup) int { return cmp.Compare(a.Path(), b.Path()) })
}

// weight is how many bytes an entry of the group takes that it shares with no other.
func (r *registry) weight(g *routeGroup) int { return bytesOf(g.webhook(r.options)) + perEntry }

// add adds the entries of groups, those of a namespace or of the cluster, if their shard has
// room for all of them.
func (r *registry) add(namespace string, groups []*routeGroup) {
	sum, shard := 0, 0
	added := map[string]*entry{}
	for _, g := range groups {
		e := &entry{Route: g.Route, shard: g.shard(namespace), webhook: g.webhook(r.options)}
		key := g.key(e)
		if before := r.entries[key]; before != nil {
			if !before.sharedBy(e) {
				for _, p := range g.policies {
					r.leaveOut(p, "its entry of the webhook's configuration would have the name "+before.webhook.Name+" of another one")
				}
				continue
			}
			e = before
		} else {
			sum += r.weight(g)
			e.webhook.Name = key + ".webhook.kvap.dev"
		}
		sum += len(namespace) + len(`"",`)
		shard, added[key] = e.shard, e
	}
	if len(added) == 0 {
		return
	}
	object := fmt.Sprintf("%s/%d", groups[0].Verb, shard)
	if r.used[object]+sum > maxShard {
		for _, g := range groups {
			for _, p := range g.policies {
				r.leaveOut(p, fmt.Sprintf("the webhook's configuration has no room for the %d bytes of its entry", sum))
			}
		}
		return
	}
	r.used[object] += sum
	for key, e := range added {
		if namespace != "" {
			e.names = append(e.names, namespace)
		}
		r.entries[key] = e
	}
}

// sharedBy tells whether an entry asks for the same as another one that would have its name.
func (e *entry) sharedBy(other *entry) bool {
	a, b := e.webhook, other.webhook
	return e.shard == other.shard && reflect.DeepEqual(
		[]any{a.ClientConfig, a.Rules, a.MatchConditions, a.TimeoutSeconds, a.SideEffects, a.FailurePolicy},
		[]any{b.ClientConfig, b.Rules, b.MatchConditions, b.TimeoutSeconds, b.SideEffects, b.FailurePolicy})
}

// shard is the object of the entry: it depends on nothing that may change while somebody has
// to be asked, so that entries seldom move. What has no bounds of its own has the first.
func (g *routeGroup) shard(namespace string) int {
	of := namespace
	switch {
	case namespace != "":
	case g.Namespaces != nil || len(g.Conditions) > 0:
		of = g.Path()
	default:
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(of))
	return 1 + int(h.Sum32()%(shards-1))
}

// key begins the name of the entry, which stands in front of a denial. Entries of the policies
// of namespaces are told apart by what they ask for, so that those which ask for the same are
// one.
func (g *routeGroup) key(e *entry) string {
	name := string(g.Verb) + "-" + g.mode()
	if g.Once {
		name += "-once"
	}
	switch {
	case g.Local:
		name += "-local-" + hashOf([]any{e.shard, g.conditions(), e.webhook.Rules, e.webhook.TimeoutSeconds, e.webhook.SideEffects})
	case g.Namespaces != nil || len(g.Conditions) > 0:
		name += "-" + hashOf([]any{g.Namespaces, g.conditions()})
	}
	return name
}

// webhook is the entry of a group but for its name, in the form of what validates.
func (g *routeGroup) webhook(o Options) admissionregistrationv1.ValidatingWebhook {
	failure, timeout, equivalent := g.failure(), g.timeout(), admissionregistrationv1.Equivalent
	effects := admissionregistrationv1.SideEffectClassNone
	if g.Verb == Validate && slices.ContainsFunc(g.policies, func(p *policy.Policy) bool { return p.Admission && p.StartsWork() }) {
		effects = admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	return admissionregistrationv1.ValidatingWebhook{
		ClientConfig: clientOf(o, g.Path()), Rules: rules(g.targets),
		FailurePolicy: &failure, MatchPolicy: &equivalent, TimeoutSeconds: &timeout, SideEffects: &effects,
		NamespaceSelector: g.selector(o), ObjectSelector: &metav1.LabelSelector{},
		AdmissionReviewVersions: []string{"v1"}, MatchConditions: conditions(g.conditions(), g.targets, o.ExcludeGroups),
	}
}

func (g *routeGroup) failure() admissionregistrationv1.FailurePolicyType {
	if g.FailurePolicy == policy.Ignore {
		return admissionregistrationv1.Ignore
	}
	return admissionregistrationv1.Fail
}

// timeout is the longest that one of the policies wants.
func (g *routeGroup) timeout() int32 {
	longest := int32(0)
	for _, p := range g.policies {
		longest = max(longest, timeoutOf(p))
	}
	return longest
}

// selector leaves the excluded namespaces out, and what the route is not about.
func (g *routeGroup) selector(o Options) *metav1.LabelSelector {
	excluded := append(always(), o.ExcludeNamespaces...)
	if o.Service != nil {
		excluded = append(excluded, o.Service.Namespace)
	}
	slices.Sort(excluded)
	out := &metav1.LabelSelector{}
	if g.Namespaces != nil {
		out = g.Namespaces.DeepCopy()
	}
	out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: nameLabel, Operator: metav1.LabelSelectorOpNotIn, Values: slices.Compact(excluded),
	})
	return out
}

// bytesOf is how long a value is as JSON.
func bytesOf(v any) int {
	data, _ := json.Marshal(v) // of what JSON has
	return len(data)
}
