package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writers is how many requests are under way at a time.
const writers = 8

// errForeign is an object of the name that somebody else made.
var errForeign = errors.New("an object of this name exists that kvap did not make; rename it or the policy")

// errReserved is a policy of a name that the controller needs.
var errReserved = errors.New("the controller needs this name for itself; rename the policy")

// A writer writes to the cluster.
type writer struct {
	client client.Client
	// direct reads without the cache.
	direct client.Reader
	tell   func(verb string) // of each write, for the metrics
}

// apply gives an object the fields that o has, by server-side apply. An object that
// the controller did not make stays as it is. o becomes what the API server has.
func (w *writer) apply(ctx context.Context, o client.Object) error {
	have, _ := o.DeepCopyObject().(client.Object)
	err := w.direct.Get(ctx, client.ObjectKeyFromObject(o), have)
	options := []client.PatchOption{client.FieldOwner(Manager)}
	switch {
	case apierrors.IsNotFound(err): // who is first to make it has it: nothing is forced
	case err != nil:
		return err
	case !isOurs(have):
		return errForeign
	default:
		options = append(options, client.ForceOwnership)
	}
	if err = w.patch(ctx, o, options...); apierrors.IsConflict(err) && len(options) == 1 {
		return errForeign
	}
	return err
}

// patch applies without a look at what is there.
func (w *writer) patch(ctx context.Context, o client.Object, options ...client.PatchOption) error {
	wanted, err := applied(o)
	if err != nil {
		return err
	}
	w.tell("apply")
	return w.client.Patch(ctx, o, wanted, options...)
}

// replace makes an object exactly what o is, for what others have added to its spec,
// which server-side apply leaves to them.
func (w *writer) replace(ctx context.Context, o client.Object) error {
	w.tell("update")
	return w.client.Update(ctx, o, client.FieldOwner(Manager))
}

// remove removes an object, if it is the one that was meant.
func (w *writer) remove(ctx context.Context, o client.Object) error {
	uid := o.GetUID()
	w.tell("delete")
	return client.IgnoreNotFound(w.client.Delete(ctx, o, client.Preconditions{UID: &uid}))
}

// applied is the patch that says all that o has, but for its status.
func applied(o client.Object) (client.Patch, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		for _, key := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
			delete(meta, key)
		}
	}
	data, err = json.Marshal(fields)
	return client.RawPatch(types.ApplyPatchType, data), err
}

// each does something with all objects, several at a time, and returns what went
// wrong by name.
func each(objects []client.Object, do func(client.Object) error) map[string]error {
	failed := map[string]error{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(writers)
	for _, o := range objects {
		group.Go(func() error {
			if err := do(o); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed[keyOf(o)] = fmt.Errorf("%s %s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), err)
			}
			return nil
		})
	}
	_ = group.Wait()
	return failed
}
