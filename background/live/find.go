package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	expiring "k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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

// A finder keeps names, by kind and namespace.
type finder struct {
	mu   sync.Mutex
	kept *expiring.Expiring
}

// keepNames is for how long names are kept that nobody asks for.
const keepNames = 2 * time.Minute

// of are the names of a kind in a namespace.
func (f *finder) of(apiVersion, kind, namespace string) *names {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := apiVersion + "/" + kind + " " + namespace
	kept, ok := f.kept.Get(key)
	if !ok {
		kept = &names{}
	}
	f.kept.Set(key, kept, keepNames)
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
	n := c.names.of(apiVersion, kind, namespace)
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
