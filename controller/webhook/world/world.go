package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/images"
	"github.com/kvap/kvap/interp"
)

// Options bound what rules reach. Zero fields have their defaults.
type Options struct {
	// Services are the URLs that rules may ask, without a query: each allows the
	// paths below it. None allows none.
	Services []string
	// Registries are those that rules may ask for images, such as ghcr.io/team; in
	// them * is any text. None allows none.
	Registries []string
	// RegistrySecrets are where the pull secrets are that rules name: a namespace.
	RegistrySecrets string
	// LocalRegistries allows registries at addresses of this machine or its link.
	LocalRegistries bool
	// BindRepository asks that what is signed of an image names the repository that it is in.
	BindRepository bool
	// SigstoreTrust is whom signatures without keys are trusted by now; nil for the public
	// Sigstore as it was when this was built.
	SigstoreTrust func() *images.Trust
	// Asked is told of each question about who signed images; nil hears of none.
	Asked func(Asked)
	// TokenFile has the token that services are asked with; empty for none.
	TokenFile string
	Timeout   time.Duration // of a call; 10 s
	MaxBytes  int64         // of an answer; 2 MiB
	// Live asks the API server each time, and watches nothing for API calls.
	Live bool
	// Called is told what an API call that reads was answered by: ByMemory, ByServer or
	// ByAnother; nil hears of none.
	Called func(by string)
	// Formats knows the formats of fields; nil knows none.
	Formats func(group, version, kind string, field []string) interp.Format
}

// What an API call is answered by: what is watched, the API server, or the API server's answer to
// another call.
const (
	ByMemory  = "memory"
	ByServer  = "server"
	ByAnother = "another"
)

// A World is the cluster and what is around it. It is safe for concurrent use once
// Run was called.
type World struct {
	options    Options
	base       *url.URL
	http       *http.Client
	kubernetes kubernetes.Interface
	dynamic    dynamic.Interface

	watches    *watches
	readings   *readings
	namespaces *watch
	roles      *bindings
	served     *Served
	globals    *globals
	images     *imageData
	proofs     *proofs
	trust      func() *images.Trust
}

// It is what the engine asks.
var (
	_ interp.World = (*World)(nil)
	_ interp.Typed = (*World)(nil)
)

// Format is what the schemas say of a field.
func (w *World) Format(group, version, kind string, field []string) interp.Format {
	if w.options.Formats == nil {
		return interp.AnyText
	}
	return w.options.Formats(group, version, kind, field)
}

// New makes a world. Nothing is asked before Run.
func New(config *rest.Config, o Options) (*World, error) {
	o.Timeout, o.MaxBytes = cmp.Or(o.Timeout, 10*time.Second), cmp.Or(o.MaxBytes, 2<<20)
	if o.Called == nil {
		o.Called = func(string) {}
	}
	w := &World{options: o, readings: newReadings(o.Called)}
	config = rest.CopyConfig(config)
	config.QPS = -1 // those who wait for an answer are users
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	w.base = base
	if w.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	if w.kubernetes, err = kubernetes.NewForConfigAndClient(config, w.http); err != nil {
		return nil, err
	}
	if w.dynamic, err = dynamic.NewForConfigAndClient(config, w.http); err != nil {
		return nil, err
	}
	w.served = newServed(w.kubernetes.Discovery())
	w.watches = newWatches(w.dynamic)
	w.roles = newBindings(w.kubernetes)
	w.globals = newGlobals(w)
	w.images = newImages(w.options.LocalRegistries)
	if w.trust = w.options.SigstoreTrust; w.trust == nil {
		trust, err := images.PublicTrust()
		if err != nil {
			return nil, err
		}
		w.trust = func() *images.Trust { return trust }
	}
	w.proofs = newProofs(w)
	return w, nil
}

// Run fills the caches and keeps them until the context ends.
func (w *World) Run(ctx context.Context) error {
	if err := w.served.Refresh(); err != nil {
		return fmt.Errorf("asking what the cluster serves: %w", err)
	}
	w.namespaces = w.watches.start(ctx, apiPath{resource: corev1.SchemeGroupVersion.WithResource("namespaces")})
	w.watches.begin(ctx)
	w.roles.start(ctx)
	go w.served.run(ctx)
	go w.globals.run(ctx)
	return nil
}

// Ready tells what is not there yet; nil if all is.
func (w *World) Ready() error {
	switch {
	case w.namespaces == nil || !w.namespaces.synced():
		return errors.New("the namespaces are not read yet")
	case !w.roles.synced():
		return errors.New("the role bindings are not read yet")
	}
	return w.globals.ready()
}

// Namespace is a Namespace as an object: from the cache, or, where that does not
// have it yet, from the API server.
func (w *World) Namespace(ctx context.Context, name string) (map[string]any, error) {
	if w.namespaces != nil {
		if object, ok := w.namespaces.get("", name); ok {
			return object, nil
		}
	}
	return w.object(ctx, "/api/v1/namespaces/"+url.PathEscape(name))
}

// ConfigMap is a ConfigMap as an object.
func (w *World) ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error) {
	return w.object(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/configmaps/"+url.PathEscape(name))
}

// Params are the objects that a paramRef selects.
func (w *World) Params(
	ctx context.Context, apiVersion, kind, namespace, name string, selector *metav1.LabelSelector,
) ([]map[string]any, error) {
	at, err := w.resource(apiVersion, kind)
	if err != nil {
		return nil, err
	}
	if name != "" {
		object, err := w.object(ctx, at.path(namespace, name))
		if errors.Is(err, interp.ErrNotFound) {
			return nil, nil
		}
		return []map[string]any{object}, err
	}
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil, err
	}
	list, err := w.object(ctx, at.path(namespace, "")+"?labelSelector="+url.QueryEscape(selects.String()))
	if err != nil {
		return nil, err
	}
	items, _ := list["items"].([]any)
	var out []map[string]any
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			object["apiVersion"], object["kind"] = apiVersion, kind
			out = append(out, object)
		}
	}
	return out, nil
}

// Kind is the kind of a resource.
func (w *World) Kind(group, version, resource string) (kind string, ok bool) {
	for _, r := range w.served.All() {
		if r.Group == group && r.Version == version && r.Plural == resource {
			return r.Kind, true
		}
	}
	return "", false
}

// Authorizer asks the API server whether a user may do something.
func (w *World) Authorizer() authorizer.UnconditionalAuthorizer {
	return authorizer.AuthorizerFunc(w.authorize)
}

func (w *World) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: a.GetUser().GetName(), Groups: a.GetUser().GetGroups(), UID: a.GetUser().GetUID(),
	}}
	if a.IsResourceRequest() {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
			Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		}
	} else {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
	}
	answer, err := w.kubernetes.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", err
	case answer.Status.Allowed:
		return authorizer.DecisionAllow, answer.Status.Reason, nil
	case answer.Status.Denied:
		return authorizer.DecisionDeny, answer.Status.Reason, nil
	}
	return authorizer.DecisionNoOpinion, answer.Status.Reason, nil
}

// Resolve finds the addresses of a host.
func (w *World) Resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Now is the time.
func (w *World) Now() time.Time { return time.Now() }

// Random is a number below n.
func (w *World) Random(n int) int { return rand.IntN(n) }

// Served is what the cluster serves.
func (w *World) Served() *Served { return w.served }

// Roles are what is bound to a user: roles as namespace:name, and cluster roles.
func (w *World) Roles(user string, groups []string, namespace string) (roles, clusterRoles []string) {
	return w.roles.of(user, groups, namespace)
}
