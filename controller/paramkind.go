package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A paramKind is the kind of the params of native policies, which a custom resource
// definition defines. An API server looks only now and then which kinds there are: until it
// has heard of one, it refuses every request that a policy with such params is about.
type paramKind struct{ apiVersion, kind string }

// paramKindOf is the kind of a policy's params; false where it has none, or one that every
// API server knows.
func paramKindOf(p client.Object) (paramKind, bool) {
	kind := kindOfParams(p)
	if kind == nil {
		return paramKind{}, false
	}
	group, _, _ := strings.Cut(kind.APIVersion, "/")
	return paramKind{kind.APIVersion, kind.Kind}, strings.Contains(group, ".") && group != kind.APIVersion
}

// paramKinds are the kinds of the params of what the controller made, in order.
func (l clusterState) paramKinds() []paramKind {
	all := map[paramKind]bool{}
	for _, p := range l.policies {
		if kind, ok := paramKindOf(p); ok && isOurs(p) {
			all[kind] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), paramKind.compare)
}

func (k paramKind) compare(other paramKind) int {
	return cmp.Or(strings.Compare(k.apiVersion, other.apiVersion), strings.Compare(k.kind, other.kind))
}

// inTurn are kinds that are in order, with those first that come after one of them: each has
// its turn.
func inTurn(kinds []paramKind, last paramKind) []paramKind {
	i := slices.IndexFunc(kinds, func(k paramKind) bool { return k.compare(last) > 0 })
	if i < 0 {
		return kinds
	}
	return slices.Concat(kinds[i:], kinds[:i])
}

// kindPatience is how long a pass waits for API servers to hear of kinds, of all together.
// They look twice a minute, and other policies wait for the pass; the next one asks again.
const kindPatience = 2 * time.Second

// objects are the canary for a state. The canary has one word once API servers know all kinds
// of params, and another one before. A process that has just begun, and finds the first word
// in the cluster, learns by it that the process before has seen API servers know all of them.
func (c *canary) objects(l clusterState) []client.Object {
	state := stateOf(l.versions())
	all := canaryObjects("kvap-"+hashOf(state), nil, l.mutates())
	unknown := c.unknown(l)
	if len(unknown) == 0 {
		return all
	}
	if !slices.ContainsFunc(all, func(o client.Object) bool { return !current(o, l) }) {
		c.learn(l, unknown...)
		return all
	}
	return canaryObjects("kvap-"+hashOf(state+fmt.Sprint(unknown)), nil, l.mutates())
}

// unknown are the kinds of params that not all API servers were seen to know.
func (c *canary) unknown(l clusterState) []paramKind {
	return slices.DeleteFunc(l.paramKinds(), func(k paramKind) bool { return c.known[k] })
}

// learn notes kinds as known, and forgets those that no policy has any more: by the time
// that one has them again, their definition may be another.
func (c *canary) learn(l clusterState, kinds ...paramKind) {
	known := map[paramKind]bool{}
	for _, k := range l.paramKinds() {
		known[k] = c.known[k] || slices.Contains(kinds, k)
	}
	c.known = known
}

// seeParams asks API servers by a canary with the kinds of params that they are not seen to
// know, and returns why one of them is not known yet, by kind.
func (c *canary) seeParams(ctx context.Context, l clusterState) map[paramKind]error {
	c.learn(l)
	unknown := c.unknown(l)
	out := map[paramKind]error{}
	bounded, cancel := context.WithTimeout(ctx, kindPatience)
	defer cancel()
	for _, k := range inTurn(unknown, c.asked) {
		if bounded.Err() != nil {
			out[k] = fmt.Errorf("the kind %s of %s, which the params are of, has not been asked for: other kinds took the time", k.kind, k.apiVersion)
			continue
		}
		if !c.isSeen(l) { // asked after what is there now was seen
			out[k] = fmt.Errorf("API servers were not asked yet whether they know the kind %s of %s, which the params are of", k.kind, k.apiVersion)
			continue
		}
		c.asked = k
		objects := canaryObjects("kvap-"+hashOf(stateOf(l.versions())+fmt.Sprint(k)), &admissionregistrationv1.ParamKind{APIVersion: k.apiVersion, Kind: k.kind}, l.mutates())
		if err := c.ask(bounded, objects, l, kindPatience); err != nil {
			out[k] = fmt.Errorf("the kind %s of %s, which the params are of, is not known to every API server yet: %w", k.kind, k.apiVersion, err)
			continue
		}
		c.learn(l, k)
	}
	if len(unknown) == 0 || len(out) > 0 {
		return out
	}
	for _, o := range c.objects(l) {
		if err := c.writer.apply(ctx, o); err != nil { // the next process asks anew
			break
		}
	}
	return out
}
