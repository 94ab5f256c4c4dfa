package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/translate"
)

// paramWait is the rules and objects that wait for ConfigMaps that do not exist.
type paramWait struct {
	objects map[int]bool // indexes of objects that are not wanted meanwhile
	rules   map[*compile.Rule]configMapRef
}

// A paramResult is what became of the ConfigMaps that rules read: a part of step 2.
type paramResult struct {
	refs    []configMapRef
	found   foundConfigMaps // those that rules are judged by
	missing []configMapRef
	waiting paramWait
	params  error // why ConfigMaps could not be read, or params not written
	// unwritten are the ConfigMaps whose params are not there for that reason.
	unwritten map[configMapRef]error
}

// lack finds the ConfigMaps of which there are no params, of those that rules read: what
// is missing, what cannot be read or written, and what namespaces have not, or not for long.
func (o *paramResult) lack(all []namespace, unread map[configMapRef]error) []configMapRef {
	var own []configMapRef
	for _, ref := range o.found.lacking(o.refs, all) {
		switch err := cmp.Or(unread[ref], unread[configMapRef{"", ref.name}]); {
		case err != nil:
			o.unwritten[ref] = err
		case slices.Contains(o.refs, ref) && o.found.has(ref):
			o.unwritten[ref] = errGoing
		case slices.Contains(o.refs, ref):
			o.missing = append(o.missing, ref)
		default:
			own = append(own, ref)
		}
	}
	return slices.AppendSeq(slices.Concat(o.missing, own), maps.Keys(o.unwritten))
}

// waitForParams leaves rules to the webhook that deny and read a ConfigMap which does not
// exist. An API server that finds no params refuses every request for the kinds of a
// binding, before it asks whether the rule matches: also what no rule is about. To Kyverno
// a ConfigMap that is missing is an error of the rule, where it comes to read it, and so
// it is to the webhook.
// So it is where a rule reads that of each object's own namespace, of which one has none.
func waitForParams(c *compileResult, missing []configMapRef, all []namespace) (compile.Result, paramWait) {
	out := paramWait{objects: map[int]bool{}, rules: map[*compile.Rule]configMapRef{}}
	result := c.result
	rules := slices.Clone(result.Rules)
	for i, o := range c.all() {
		ref, lacks := lacking(o, missing, all)
		if !lacks || !deniesWithoutParams(o) {
			continue
		}
		out.objects[i] = true
		for n, r := range rules {
			mutating := i - len(result.Objects)
			if slices.Contains(r.Objects, i) || slices.Contains(r.Mutating, mutating) {
				rules[n] = out.leave(r, mutating, i, ref)
			}
		}
	}
	result.Rules = rules
	return result, out
}

// leave is a rule that the webhook judges in place of one of its objects.
func (w paramWait) leave(r *compile.Rule, mutating, object int, ref configMapRef) *compile.Rule {
	left := *r
	left.Target, left.Reason = translate.Webhook, fmt.Sprintf("there are no params of the ConfigMap %s/%s", ref.namespace, ref.name)
	left.Objects = slices.DeleteFunc(slices.Clone(r.Objects), func(i int) bool { return i == object })
	left.Mutating = slices.DeleteFunc(slices.Clone(r.Mutating), func(i int) bool { return i == mutating })
	delete(w.rules, r)
	w.rules[&left] = ref
	return &left
}

// deniesWithoutParams tells that requests are refused for want of params.
func deniesWithoutParams(o wantedPolicy) bool {
	return slices.ContainsFunc(o.bindings, func(b client.Object) bool {
		ref := paramRefOf(b)
		return ref != nil && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == "Deny"
	})
}
