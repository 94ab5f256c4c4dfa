package live

import (
	"context"
	"encoding/json"
	stderrors "errors"
	"fmt"
	"maps"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/background"
	"github.com/kvap/kvap/interp"
)

// FieldManager is that of all that background work writes.
const FieldManager = "kvap-background"

const (
	pageSize  = 500
	maxListed = 20_000 // objects of a list
)

// A Client reads and writes a cluster by its API server.
type Client struct {
	client   client.Client
	metadata metadata.Interface

	mu    sync.Mutex
	names *expiring.Expiring // of each kind and namespace
	// allowed are questions to which the API server has said yes.
	allowed *expiring.Expiring
}

var _ background.Cluster = (*Client)(nil)

// New connects to a cluster.
func New(config *rest.Config, namespace string) (*Client, *Requests, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1                           // the API server's own priorities and fairness see to it
	config.WarningHandler = rest.NoWarnings{} // of kinds that are deprecated
	scheme := runtime.NewScheme()
	all := runtime.NewSchemeBuilder(v1alpha1.AddToScheme, corev1.AddToScheme, authorizationv1.AddToScheme)
	if err := all.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, err
	}
	m, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return &Client{client: c, metadata: m, names: expiring.NewExpiring(), allowed: expiring.NewExpiring()}, &Requests{client: c, namespace: namespace}, nil
}

func unstructuredOf(apiVersion, kind string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(apiVersion)
	out.SetKind(kind)
	return out
}

// outside tells of a namespace that objects of a kind are not in, because they are in
// none. The client would leave the namespace out, and reach over all of them.
func (c *Client) outside(apiVersion, kind, namespace string) (bool, error) {
	if namespace == "" {
		return false, nil
	}
	namespaced, err := c.client.IsObjectNamespaced(unstructuredOf(apiVersion, kind))
	return err == nil && !namespaced, err
}

// inside is an error where an object says to be in a namespace and cannot be.
func (c *Client) inside(apiVersion, kind, namespace string) error {
	outside, err := c.outside(apiVersion, kind, namespace)
	if outside {
		return fmt.Errorf("objects of the kind %s are in no namespace, and so not in %s", kind, namespace)
	}
	return err
}

func (c *Client) objectInside(o *unstructured.Unstructured) error {
	return c.inside(o.GetAPIVersion(), o.GetKind(), o.GetNamespace())
}

// Namespaced implements background.Cluster.
func (c *Client) Namespaced(_ context.Context, apiVersion, kind string) (bool, error) {
	namespaced, err := c.client.IsObjectNamespaced(unstructuredOf(apiVersion, kind))
	if apimeta.IsNoMatchError(err) {
		return true, nil
	}
	return namespaced, err
}

// Get implements background.Cluster.
func (c *Client) Get(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, bool, error) {
	if err := c.inside(apiVersion, kind, namespace); err != nil {
		return nil, false, err
	}
	out := unstructuredOf(apiVersion, kind)
	err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, out)
	if errors.IsNotFound(err) {
		return nil, false, nil
	}
	return out.Object, err == nil, err
}

// List implements background.Cluster.
func (c *Client) List(ctx context.Context, apiVersion, kind, namespace string, selector labels.Selector) ([]map[string]any, error) {
	var out []map[string]any
	for from := ""; ; {
		page, next, err := c.Page(ctx, apiVersion, kind, namespace, selector, from)
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		switch {
		case next == "":
			return out, nil
		case len(out) >= maxListed:
			return nil, fmt.Errorf("there are more than %d objects of the kind %s", maxListed, kind)
		}
		from = next
	}
}

// Page implements background.Cluster. Where the list has become too old to go on with,
// it goes on with a newer one: what has changed meanwhile is told by who changed it.
func (c *Client) Page(ctx context.Context, apiVersion, kind, namespace string, selector labels.Selector, from string) (objects []map[string]any, next string, err error) {
	if outside, err := c.outside(apiVersion, kind, namespace); outside || err != nil {
		return nil, "", err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
	o := &client.ListOptions{Namespace: namespace, LabelSelector: selector, Limit: pageSize, Continue: from}
	err = c.client.List(ctx, list, o)
	if newer := newerPage(err); newer != "" {
		o.Continue = newer
		err = c.client.List(ctx, list, o)
	}
	if err != nil {
		return nil, "", err
	}
	for i := range list.Items {
		objects = append(objects, list.Items[i].Object)
	}
	return objects, list.GetContinue(), nil
}

// newerPage is where to go on with a list that has become too old, if an error says so.
func newerPage(err error) string {
	var status errors.APIStatus
	if !errors.IsResourceExpired(err) || !stderrors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// Create implements background.Cluster.
func (c *Client) Create(ctx context.Context, object map[string]any) (string, error) {
	o := &unstructured.Unstructured{Object: maps.Clone(object)}
	if err := c.objectInside(o); err != nil {
		return "", err
	}
	err := c.client.Create(ctx, o, client.FieldOwner(FieldManager))
	return o.GetResourceVersion(), err
}

// Update implements background.Cluster.
func (c *Client) Update(ctx context.Context, object map[string]any, subresource string) (string, error) {
	o := &unstructured.Unstructured{Object: maps.Clone(object)}
	if err := c.objectInside(o); err != nil {
		return "", err
	}
	if subresource != "" {
		err := c.client.SubResource(subresource).Update(ctx, o, client.FieldOwner(FieldManager))
		return o.GetResourceVersion(), err
	}
	err := c.client.Update(ctx, o, client.FieldOwner(FieldManager))
	return o.GetResourceVersion(), err
}

// Apply implements background.Cluster.
func (c *Client) Apply(ctx context.Context, object map[string]any) (string, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	o := &unstructured.Unstructured{Object: maps.Clone(object)}
	if err := c.objectInside(o); err != nil {
		return "", err
	}
	err = c.client.Patch(ctx, o, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(FieldManager), client.ForceOwnership)
	return o.GetResourceVersion(), err
}

// Label implements background.Cluster.
func (c *Client) Label(ctx context.Context, at interp.ObjectReference, change map[string]*string) error {
	if err := c.inside(at.APIVersion, at.Kind, at.Namespace); err != nil {
		return err
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(at.APIVersion, at.Kind))
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: at.Name}, o); err != nil {
		return err
	}
	differs := false
	for key, value := range change {
		have, has := o.Labels[key]
		differs = differs || has != (value != nil) || has && have != *value
	}
	if !differs {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": change}})
	if err != nil {
		return err
	}
	return c.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, data), client.FieldOwner(FieldManager))
}

// Delete implements background.Cluster.
func (c *Client) Delete(ctx context.Context, object map[string]any) error {
	o := &unstructured.Unstructured{Object: maps.Clone(object)}
	if err := c.objectInside(o); err != nil {
		return err
	}
	uid := o.GetUID()
	return c.client.Delete(ctx, o, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
}

// Labels tell the UID of a trigger, and not its name. What has which name does not
// change, so the names that one list has told are kept for a while, and the object is
// read by its name: to look after thousands of objects takes one list of their
// triggers, and not thousands.

// names are what one list has told, or is about to.
type names struct {
	mu    sync.Mutex
	begun time.Time
	of    map[types.UID]string
}

// keepNames is for how long names are kept that nobody asks for.
const keepNames = 2 * time.Minute

// namesOf are the names of a kind in a namespace.
func (c *Client) namesOf(apiVersion, kind, namespace string) *names {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := apiVersion + "/" + kind + " " + namespace
	kept, ok := c.names.Get(key)
	if !ok {
		kept = &names{}
	}
	c.names.Set(key, kept, keepNames)
	return kept.(*names)
}

// Find implements background.Cluster.
func (c *Client) Find(ctx context.Context, apiVersion, kind, namespace string, uid types.UID) (map[string]any, bool, error) {
	if outside, err := c.outside(apiVersion, kind, namespace); outside || err != nil {
		return nil, false, err
	}
	asked := time.Now()
	name, err := c.nameOf(ctx, apiVersion, kind, namespace, uid, asked)
	if name == "" || err != nil {
		return nil, false, err
	}
	object, found, err := c.Get(ctx, apiVersion, kind, namespace, name)
	return object, found && (&unstructured.Unstructured{Object: object}).GetUID() == uid, err
}

// nameOf is the name of the object with a UID; empty where a list that began after it
// was asked has none.
func (c *Client) nameOf(ctx context.Context, apiVersion, kind, namespace string, uid types.UID, asked time.Time) (string, error) {
	n := c.namesOf(apiVersion, kind, namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	if name := n.of[uid]; name != "" || n.of != nil && n.begun.After(asked) {
		return name, nil
	}
	begun, all := time.Now(), map[types.UID]string{}
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind+"List"))
		if err := c.client.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: pageSize, Continue: next}); err != nil {
			return "", err
		}
		for _, one := range list.Items {
			if one.Namespace == namespace {
				all[one.UID] = one.Name
			}
		}
		if next = list.GetContinue(); next == "" {
			break
		}
		if len(all) >= maxNames {
			return "", fmt.Errorf("there are more than %d objects of the kind %s", maxNames, kind)
		}
	}
	n.begun, n.of = begun, all
	return all[uid], nil
}

// maxNames bounds what is kept of one kind in one namespace.
const maxNames = 200_000

// keepAllowed is for how long it is not asked again what this process may do. That it may
// no more shows when work fails; what it may not do is asked each time.
const keepAllowed = 10 * time.Minute

// May is a background.May: it asks the API server what this process may do.
func (c *Client) May(ctx context.Context, verb string, k v1alpha1.KindReference, namespace string) (bool, error) {
	kind := schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
	at, err := c.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case apimeta.IsNoMatchError(err):
		return true, nil // nothing of it can be made, which is another failure
	case err != nil:
		return false, err
	}
	what := authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb, Group: at.Resource.Group, Version: at.Resource.Version, Resource: at.Resource.Resource,
	}
	if _, allowed := c.allowed.Get(what.String()); allowed {
		return true, nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	if err := c.client.Create(ctx, review); err != nil {
		return false, err
	}
	if review.Status.Allowed {
		c.allowed.Set(what.String(), true, keepAllowed)
	}
	return review.Status.Allowed, nil
}
