package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// isCanary tells of the canary's own objects.
func isCanary(name string) bool { return name == canaryName }

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
	versions := l.versions()
	if err := c.ask(ctx, c.objects(l), l, c.patience); err != nil {
		return err
	}
	c.seen, c.parts, c.since = versions, l.parts(), c.now()
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
	servers, silent, err := c.heard(ctx, word, patience)
	switch {
	case silent != "":
		return fmt.Errorf("%s does not yet judge by the policies: %w", silent, err)
	case err != nil:
		return err
	}
	c.servers = servers
	return nil
}

// heard asks every API server, dry, for an object until all have warned with a word, and
// returns how many they are, or the first that has not.
func (c *canary) heard(ctx context.Context, word string, patience time.Duration) (all int, silent string, err error) {
	servers, err := c.apiServers(ctx)
	if err != nil {
		return 0, "", err
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
			return len(servers), servers[i].Host, err
		}
	}
	return len(servers), "", nil
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

// A canaryResult is what API servers were seen to judge by.
type canaryResult struct {
	judges  map[string]bool  // objects as they are, by kind and name
	servers int              // how many API servers they are
	parts   map[string]parts // of rules, whatever else is in the objects
	// unknown are the kinds of params that some API server does not know, and why.
	unknown map[paramKind]error
}

// result asks what API servers know of the state besides.
func (c *canary) result(ctx context.Context, l clusterState) canaryResult {
	unknown := c.seeParams(ctx, l)
	return canaryResult{c.judges(l), c.servers, c.parts, unknown}
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
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	asking, err := client.New(server, client.Options{Scheme: scheme, Mapper: canaryMapper()})
	if err != nil {
		return err
	}
	for {
		// Whatever comes of the request: all validating policies are asked.
		err := asking.Create(ctx, &v1alpha1.Params{ObjectMeta: metav1.ObjectMeta{Name: word, Namespace: namespace}}, client.DryRunAll)
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
