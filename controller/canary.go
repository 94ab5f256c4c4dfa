package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
)

// canaryName is that of a native policy, and its binding, that warns about Params of
// one name, which nobody makes. An API server learns of policies, and of bindings,
// in the order of their changes, and takes up what it has learned all at once, about
// once a second. So where it warns about a name that the policy and the binding were
// given after all others were written, it judges by all of them.
const canaryName = "kvap-canary"

// A canary sees whether API servers judge by what was written.
type canary struct {
	writer  *writer
	options Options
	config  *rest.Config
	seen    map[string]string // the versions that all API servers were seen to judge by; nil before that
	since   time.Time         // when they were
	now     func() time.Time
	servers int // how many they were
	// parts are those that all API servers were seen to judge by, and that no object has
	// lost since.
	parts map[string]parts
	// known are the kinds of params that all API servers were seen to know, of those that
	// policies have.
	known map[paramKind]bool
	// asked is the kind of params that was asked for last.
	asked paramKind
	// patience is how long it waits for the API servers.
	patience time.Duration
}

// see returns when every API server judges by the state of the native policies, be it
// that there are none any more.
func (c *canary) see(ctx context.Context, l clusterState) error {
	if c.isSeen(l) {
		return nil
	}
	if err := c.ask(ctx, c.objects(l), l, c.patience); err != nil {
		return err
	}
	c.seen, c.parts, c.since = l.versions(), l.parts(), c.now()
	return nil
}

// ask writes the canary, unless it is there, and returns when every API server judges by
// it.
func (c *canary) ask(ctx context.Context, objects []client.Object, l clusterState, patience time.Duration) error {
	for _, o := range objects {
		if current(o, l) {
			continue
		}
		if err := c.writer.apply(ctx, o); err != nil {
			return fmt.Errorf("the canary, which tells whether policies are in effect: %w", err)
		}
	}
	word := objects[0].(*nativePolicy).Spec.MatchConstraints.ResourceRules[0].ResourceNames[0]
	servers, err := c.heard(ctx, word, patience, " does not yet judge by the policies")
	if err != nil {
		return err
	}
	c.servers = servers
	return nil
}

// heard asks every API server, dry, for an object until all have warned with a word, and
// returns how many they are. Of the first that has not it says what it does not.
func (c *canary) heard(ctx context.Context, word string, patience time.Duration, what string) (all int, err error) {
	servers, err := c.apiServers(ctx)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	errs := make([]error, len(servers))
	var group sync.WaitGroup
	for i, server := range servers {
		group.Go(func() { errs[i] = warns(ctx, server, c.options.Namespace, word) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return 0, fmt.Errorf("%s%s: %w", servers[i].Host, what, err)
		}
	}
	return len(servers), nil
}

// isSeen tells that all API servers judge by a state.
func (c *canary) isSeen(l clusterState) bool {
	return c.seen != nil && maps.Equal(c.seen, l.versions())
}

// note takes note of what is live, be it for a moment: what a rule was seen to be judged by
// no longer counts once it was otherwise.
func (c *canary) note(l clusterState) {
	if !c.isSeen(l) {
		c.parts = commonParts(c.parts, l.parts())
	}
}

// judges are the objects that all API servers were seen to judge by as they are, by
// kind and name. What has changed elsewhere since then does not matter.
func (c *canary) judges(l clusterState) map[string]bool {
	out := map[string]bool{}
	for key, version := range l.versions() {
		out[key] = c.seen[key] == version
	}
	for _, p := range l.policies {
		if kind, ok := paramKindOf(p); ok && !c.known[kind] {
			out[writtenKey(p)] = false
		}
	}
	return out
}

func current(o client.Object, l clusterState) bool {
	have := l.like(o)
	return have != nil && sameObject(o, have)
}

// warns asks an API server, dry, for an object until it warns with a word.
func warns(ctx context.Context, server *rest.Config, namespace, word string) error {
	heard := &listener{word: word}
	server = rest.CopyConfig(server)
	server.WarningHandler, server.WarningHandlerWithContext = heard, nil
	asking, err := dynamic.NewForConfig(server)
	if err != nil {
		return err
	}
	params := unstructuredOf(v1alpha1.GroupVersion().WithKind("Params"))
	params.SetName(word)
	for {
		// Whatever comes of the request: all validating policies are asked.
		_, err := asking.Resource(v1alpha1.GroupVersion().WithResource("params")).Namespace(namespace).Create(ctx, params, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if heard.yes.Load() {
			return nil
		}
		if apierrors.IsNotFound(err) || err == nil && ctx.Err() != nil {
			err = ctx.Err()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for it: %w", cmp.Or(err, ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A listener waits for a word in a warning.
type listener struct {
	word string
	yes  atomic.Bool
}

// HandleWarningHeader takes the warnings of a response.
func (l *listener) HandleWarningHeader(_ int, _, text string) {
	if strings.Contains(text, l.word) {
		l.yes.Store(true)
	}
}

// apiServers are all API servers, each by an address of its own where the cluster
// tells it.
func (c *canary) apiServers(ctx context.Context) ([]*rest.Config, error) {
	if len(c.options.Servers) > 0 {
		return c.options.Servers, nil
	}
	var slices discoveryv1.EndpointSliceList
	err := c.writer.direct.List(ctx, &slices, client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	var out []*rest.Config
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			for _, port := range slice.Ports {
				if len(endpoint.Addresses) == 0 || port.Port == nil {
					continue
				}
				one := rest.CopyConfig(c.config)
				one.Host = "https://" + net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*port.Port)))
				one.ServerName = "kubernetes.default.svc"
				out = append(out, one)
			}
		}
	}
	if len(out) < 2 { // then the address that is in use is the one
		return []*rest.Config{c.config}, nil
	}
	return out, nil
}

// canaryKey is the annotation by which the canary that mutates is seen.
const canaryKey = "kvap.dev/canary"

// mutates tells of a cluster with policies of the controller's that mutate, or that has had
// some: the canary that it then has shows that they are gone.
func (l clusterState) mutates() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(l.policies)), func(p client.Object) bool { return mutates(p) && isOurs(p) })
}

// canaryObjects are a policy that finds fault with Params of one name, and its
// binding. Both name it, so that both must be known for a warning; and so must the kind
// of the policy's params, if it has one.
//
// Where there are policies that mutate, others, of which an API server learns in the same
// way, have such Params annotated, and the fault is the annotation: who validates comes after
// who mutates.
func canaryObjects(word string, params *admissionregistrationv1.ParamKind, mutations bool) []client.Object {
	named := func() *admissionregistrationv1.MatchResources {
		return &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: new(admissionregistrationv1.Equivalent),
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{word},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{v1alpha1.Group}, APIVersions: []string{v1alpha1.Version}, Resources: []string{"params"}, Scope: new(admissionregistrationv1.NamespacedScope),
					},
				},
			}},
		}
	}
	ignore := admissionregistrationv1.Ignore
	fine := "false"
	if mutations {
		fine = fmt.Sprintf("object.metadata.?annotations[?'%s'].orValue('') != '%s'", canaryKey, word)
	}
	p := &nativePolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &ignore, MatchConstraints: named(), ParamKind: params,
		Validations: []admissionregistrationv1.Validation{{Expression: fine, Message: word + " is in effect"}},
	}}
	b := &nativeBinding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: canaryName, MatchResources: named(),
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn},
	}}
	out := []client.Object{p, b}
	if mutations {
		out = append(out,
			&mutatingPolicy{Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				FailurePolicy: &ignore, MatchConstraints: named(), ParamKind: params, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType: admissionregistrationv1.PatchTypeJSONPatch,
					JSONPatch: &admissionregistrationv1.JSONPatch{
						Expression: fmt.Sprintf("[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'%s': '%s'}}]", canaryKey, word),
					},
				}},
			}},
			&mutatingBinding{Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
				PolicyName: canaryName, MatchResources: named(),
			}},
		)
	}
	for _, o := range out {
		o.GetObjectKind().SetGroupVersionKind(gvkOf(o))
		o.SetName(canaryName)
		o.SetLabels(ownLabels(nil))
		o.SetAnnotations(map[string]string{enforcerKey: "true"})
	}
	return out
}

// A paramKind is the kind of the params of native policies, which a custom resource
// definition defines. An API server looks only now and then which kinds there are: until it
// has heard of one, it refuses every request that a policy with such params is about.
type paramKind struct{ apiVersion, kind string }

// paramKindOf is the kind of a policy's params; false where it has none, or one that every
// API server knows.
func paramKindOf(p client.Object) (paramKind, bool) {
	kind := field[*admissionregistrationv1.ParamKind](p, "ParamKind")
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
