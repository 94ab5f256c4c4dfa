package incluster

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// nativeRules judge again what API servers have judged by native policies and let in: these tell
// nobody of what passes, of exceptions and of what they change.
type nativeRules struct {
	server  *webhook.Server          // which serves nobody
	exclude atomic.Pointer[[]string] // namespaces that native policies leave out; nil before these are known
	log     logr.Logger
}

// newNativeRules tells of what is judged as of what the webhook judges.
func newNativeRules(o *fallback) *nativeRules {
	return &nativeRules{log: o.log.WithName("natively"), server: webhook.New(webhook.Options{
		World: o.world, WorldOf: o.worldOf, Log: logr.Discard(),
		Record: func(r webhook.Record) {
			of, ok := o.sourceOf(r.Of)
			if told := r.Status == interp.Pass || r.Status == interp.Skip; ok && told { // the log tells what is violated
				o.events.judged(r, of)
			}
		},
		Roles: func(_ context.Context, u webhook.User, namespace string) ([]string, []string, error) {
			roles, clusterRoles := o.world.Roles(u.Name, u.Groups, namespace)
			return roles, clusterRoles, nil
		},
	})}
}

// setNative says which policies are judged natively. They are kept, and have sources, as those that are
// served.
func (o *fallback) setNative(remaining controller.Remaining, kept map[string]*policy.Policy, sources map[*policy.Policy]v1alpha1.PolicyReference) {
	set := webhook.PolicySet{Exceptions: remaining.Exceptions}
	for _, one := range remaining.Native {
		if p, err := o.remainder(one, kept); err == nil && p != nil { // what cannot be read is not native
			sources[p] = one.Source
			set.Policies = append(set.Policies, webhook.Policy{Policy: p})
		}
	}
	o.natively.exclude.Store(&remaining.ExcludeNamespaces)
	o.natively.server.Set(set)
}

// created judges a request by which an object was created.
func (n *nativeRules) created(ctx context.Context, request map[string]any) {
	exclude := n.exclude.Load()
	if namespace, _ := request["namespace"].(string); exclude == nil || slices.Contains(*exclude, namespace) {
		return
	}
	if err := n.server.Afterwards(ctx, request); err != nil && ctx.Err() == nil {
		n.log.V(1).Info("a request of the audit log is not judged again", "reason", err.Error())
	}
}
